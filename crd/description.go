package crd

import "strings"

// descriptionOf returns the description of a type or field in a schema. text is the comment of the Go type or field.
// The lines of a paragraph are joined. Paragraphs, list items and indented lines stay separate. Lines for tools, such
// as +optional or a nolint, are left out, however they are indented. (The go: directives are not part of the text of a
// comment.)
//
// For example, the text of five lines "Image is the", "image to run.", "", "  - a digest" and "+optional" gives
// "Image is the image to run.", an empty line, and "- a digest".
func descriptionOf(text string) string {
	var b strings.Builder
	blank, item, verbatim := false, false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		word := strings.TrimSpace(line)
		if word == "" {
			blank = true
			continue
		}
		if strings.HasPrefix(word, "+") || word == "nolint" || strings.HasPrefix(word, "nolint:") {
			continue
		}
		indented := line != word
		wasItem, wasVerbatim := item && !blank, verbatim
		item = isItem(word) || wasItem && indented
		verbatim = indented && !item
		switch {
		case b.Len() == 0:
		case blank:
			b.WriteString("\n\n")
		case isItem(word) || verbatim || wasVerbatim:
			b.WriteString("\n")
		default:
			b.WriteString(" ")
		}
		if !verbatim {
			line = word
		}
		b.WriteString(line)
		blank = false
	}
	return b.String()
}

// isItem reports whether a line begins an item of a list.
func isItem(line string) bool {
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") {
		return true
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return digits > 0 && digits < 3 && (strings.HasPrefix(line[digits:], ". ") || strings.HasPrefix(line[digits:], ") "))
}
