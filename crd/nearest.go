package crd

import (
	"sort"
	"strings"
)

// nearest returns the n names that differ least from name, or all of fewer names. The nearest name
// comes first. names must be sorted, and nearest changes it.
func nearest(name string, names []string, n int) []string {
	sort.SliceStable(names, func(i, j int) bool { return distance(name, names[i]) < distance(name, names[j]) })
	return names[:min(n, len(names))]
}

// likelyMeant returns the nearest of names, if name may be a misspelling of it. It is empty if all names
// differ from name in more than a third of the letters.
func likelyMeant(name string, names []string) string {
	for _, other := range nearest(name, names, 1) {
		if distance(name, other) <= max(len(name), len(other))/3 {
			return other
		}
	}
	return ""
}

// distance returns the number of bytes that must be inserted, removed or replaced to make b of a,
// apart from capital letters: the Levenshtein distance. For example, the distance of minLenght and minLength is 2.
// row[j] is the distance of the first i bytes of a and the first j bytes of b.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
