package crd

import (
	"cmp"
	"slices"
	"strings"
)

// nearest returns at most n of names, those that differ least from name first. It leaves out names
// that have little in common with name.
func nearest(name string, names []string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var all []candidate
	for _, other := range names {
		d := distance(strings.ToLower(name), strings.ToLower(other))
		if d <= max(len(name), len(other))/3 {
			all = append(all, candidate{other, d})
		}
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

// distance returns the number of bytes that must be inserted, removed or replaced to make b of a:
// the Levenshtein distance.
func distance(a, b string) int {
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
