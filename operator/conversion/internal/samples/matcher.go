package samples

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/yare-go/yare/crd"
)

// maxTries bounds the tries to find a string that a pattern and bounds of the length accept.
const maxTries = 50

// quantities returns quantities as Kubernetes writes them. A random text that matches the pattern of a quantity is
// mostly written in another way by a Go type.
func quantities() []string { return []string{"1", "100m", "1Gi", "250Mi"} }

// matcher makes strings that match a pattern.
type matcher struct{ random *rand.Rand }

// matching returns a string that the pattern and the length of s accept. It returns the last try if it finds none.
func (m matcher) matching(s *crd.Schema) string {
	pattern, err := regexp.Compile(s.Pattern)
	if err != nil {
		return "" // the kind reports the pattern
	}
	if isQuantity(pattern) {
		all := quantities()
		return all[m.random.IntN(len(all))]
	}
	parsed, err := syntax.Parse(s.Pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	text := ""
	for range maxTries {
		var b strings.Builder
		m.writeMatch(&b, parsed)
		text = b.String()
		n := int64(utf8.RuneCountInString(text))
		if pattern.MatchString(text) && (s.MinLength == nil || n >= *s.MinLength) &&
			(s.MaxLength == nil || n <= *s.MaxLength) {
			return text
		}
	}
	return text
}

// isQuantity reports whether a pattern is that of quantities.
func isQuantity(p *regexp.Regexp) bool {
	return p.MatchString("1Gi") && p.MatchString("100m") && !p.MatchString("a")
}

// writeMatch writes a string that r mostly matches. For example, for ^a[0-9]+$ it writes a47.
func (m matcher) writeMatch(b *strings.Builder, r *syntax.Regexp) {
	repeat := func(least, most int) {
		for range least + m.random.IntN(most-least+1) {
			m.writeMatch(b, r.Sub[0])
		}
	}
	switch r.Op {
	case syntax.OpLiteral:
		b.WriteString(string(r.Rune))
	case syntax.OpCharClass:
		b.WriteRune(m.runeOf(r.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune(rune('a' + m.random.IntN(26)))
	case syntax.OpStar:
		repeat(0, 3)
	case syntax.OpPlus:
		repeat(1, 3)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		most := r.Min + 3
		if r.Max >= 0 {
			most = min(most, r.Max)
		}
		repeat(r.Min, most)
	case syntax.OpAlternate:
		m.writeMatch(b, r.Sub[m.random.IntN(len(r.Sub))])
	case syntax.OpCapture, syntax.OpConcat:
		for _, each := range r.Sub {
			m.writeMatch(b, each)
		}
	}
}

// runeOf returns a rune of a class, which is a list of the first and the last rune of each range. Letters and digits
// are mostly preferred.
func (m matcher) runeOf(class []rune) rune {
	const alphanumeric = "abcxyz0189AZ"
	var plain, all []rune
	for r := rune(' '); r <= '~'; r++ {
		if !contains(class, r) {
			continue
		}
		all = append(all, r)
		if strings.ContainsRune(alphanumeric, r) {
			plain = append(plain, r)
		}
	}
	switch {
	case len(plain) > 0 && m.random.IntN(8) > 0:
		return plain[m.random.IntN(len(plain))]
	case len(all) > 0:
		return all[m.random.IntN(len(all))]
	case len(class) > 0:
		return class[0]
	}
	return 'a'
}

// contains reports whether r is in a class.
func contains(class []rune, r rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] <= r && r <= class[i+1] {
			return true
		}
	}
	return false
}
