package crd

import "strings"

// fold makes a description of a comment: lines of a paragraph are joined, paragraphs stay
// apart, lists and indented lines stay lines. Lines for tools are left out, such as
// +optional and nolint. (The go: directives are not part of a comment's text.)
func fold(text string) string {
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

// isItem is true for a line that begins an item of a list.
func isItem(line string) bool {
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") {
		return true
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return digits > 0 && digits < 3 && (strings.HasPrefix(line[digits:], ". ") || strings.HasPrefix(line[digits:], ") "))
}
