package tags

import (
	"slices"
	"strings"
)

// directive is one key of a crd tag, such as minimum=1 or items.maxLength=63.
type directive struct {
	key, value string
	hasValue   bool
}

// String returns the directive as a tag has it.
func (d directive) String() string {
	switch {
	case !d.hasValue:
		return d.key
	case strings.ContainsAny(d.value, ",'") || strings.TrimSpace(d.value) != d.value:
		return d.key + "='" + strings.ReplaceAll(d.value, "'", "''") + "'"
	default:
		return d.key + "=" + d.value
	}
}

// isRepeated reports whether a tag can have the key several times.
func isRepeated(key string) bool {
	key = key[strings.LastIndexByte(key, '.')+1:]
	return slices.Contains([]string{"rule", "message", "listMapKey", "exactlyOneOf", "atMostOneOf", "atLeastOneOf"}, key)
}

// tagOf returns the text of a crd tag that begins with old. A key that old or an earlier directive has is left out. A
// bound precedes what makes the bound exclusive.
func tagOf(old string, directives []directive) string {
	slices.SortStableFunc(directives, func(a, b directive) int { return order(a.key) - order(b.key) })
	keys := keysOf(old)
	var added []string
	for _, d := range directives {
		if slices.Contains(keys, d.key) && !isRepeated(d.key) || isRepeated(d.key) && strings.Contains(old, d.String()) {
			continue
		}
		keys, added = append(keys, d.key), append(added, d.String())
	}
	return strings.Trim(old+","+strings.Join(added, ","), ",")
}

// keysOf returns the keys of a crd tag. A comma within a value adds words that are no keys.
func keysOf(tag string) (keys []string) {
	for text := range strings.SplitSeq(tag, ",") {
		key, _, _ := strings.Cut(text, "=")
		keys = append(keys, strings.TrimSpace(key))
	}
	return keys
}

// order returns a number by which the directives of a tag are sorted.
func order(key string) int {
	switch {
	case key == "required" || key == "optional" || key == "type":
		return 0
	case strings.Contains(key, "exclusive"):
		return 2
	default:
		return 1
	}
}
