// Package plural forms the plural of a kind as controller-gen does, so that a kind keeps its name in URLs
// when its program moves from kubebuilder to yare.
//
// controller-gen calls [github.com/gobuffalo/flect]. The words and suffixes of flect stand in tables.go, under the
// license in this folder. An operator does not link flect itself, because flect reads files of the working directory
// when a program starts. The module lab/controllergen compares the plurals of both.
//
// [github.com/gobuffalo/flect]: https://pkg.go.dev/github.com/gobuffalo/flect
package plural

import (
	"slices"
	"strings"
	"unicode"
)

// Of returns the plural of a kind in lower case, such as policies for Policy.
//
// The rules see only the last word of the kind. The first of these rules that applies decides:
//
//	WebSeries   webseries     the last word is in the dictionary, as a plural
//	PageIndex   pageindices   the last word is in the dictionary, as a singular
//	Gatehouse   gatehouses    the last word ends with a word of the dictionary
//	GitProxy    gitproxies    the last word ends with a suffix that has a rule
//	Postgres    postgres      the last word ends with s
//	WebApp      webapps       every other kind
func Of(kind string) string {
	lower := strings.ToLower(kind)
	last := lastWord(kind)
	if plural, found := find(last, lower[len(lower)-len(last):]); found {
		return strings.ToLower(strings.TrimSuffix(kind, last) + plural)
	}
	if strings.HasSuffix(lower, "s") {
		return lower
	}
	return lower + "s"
}

// find returns the plural of the last word of a kind, if the tables decide the plural. lower is the word in lower case.
func find(last, lower string) (plural string, found bool) {
	for _, dictionary := range [][]entry{wholeWords, words} {
		for _, e := range dictionary {
			switch lower {
			case e.plural:
				return last, true
			case e.singular:
				return e.plural, true
			}
		}
	}
	if slices.Contains(otherPlurals, lower) {
		return last, true
	}
	for _, table := range [][]entry{words, suffixes} {
		for _, e := range table {
			if strings.HasSuffix(last, e.plural) {
				return last, true
			}
			if start, found := strings.CutSuffix(last, e.singular); found {
				return start + e.plural, true
			}
		}
	}
	return "", false
}

// lastWord returns the last word of a kind, such as App of WebApp and Route of HTTPRoute. Between two capital
// letters a word begins only if the letters before are an acronym. An acronym is returned in capital letters.
func lastWord(kind string) string {
	start, previous := 0, ' '
	if !isAcronym(kind) {
		for i, c := range kind {
			if c == '-' || unicode.IsUpper(c) && (!unicode.IsUpper(previous) || isAcronym(kind[start:i])) {
				start = i
			}
			previous = c
		}
	}
	last := strings.Trim(kind[start:], "-")
	if isAcronym(last) {
		return strings.ToUpper(last)
	}
	return last
}

// isAcronym reports whether word is an acronym, in any case.
func isAcronym(word string) bool {
	return len(word) <= len("HTTPS") && strings.Contains(acronyms, " "+strings.ToUpper(word)+" ")
}
