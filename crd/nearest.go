package crd

import (
	"cmp"
	"slices"
	"strings"
)

// nearest returns at most n of names, those that differ least from name first.
func nearest(name string, names []string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var all []candidate
	for _, other := range names {
		all = append(all, candidate{other, distance(name, other)})
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var found []string
	for _, c := range all[:min(n, len(all))] {
		found = append(found, c.name)
	}
	return found
}

// alike returns the one of names that name may have been meant to be. It is empty if all of them
// differ much from name.
func alike(name string, names []string) string {
	for _, other := range nearest(name, names, 1) {
		if distance(name, other) <= max(len(name), len(other))/3 {
			return other
		}
	}
	return ""
}

// distance returns the number of bytes that must be inserted, removed or replaced to make b of a,
// apart from capital letters: the Levenshtein distance.
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
