package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// figures are measured values, by name: seconds, bytes and numbers. figureNames has their titles.
type figures map[string]float64

// result is one line of results.jsonl: a round of a program in a row, or the setup of a run. Round 0 has the counts.
type result struct {
	Row     string  `json:"row,omitempty"`
	Program string  `json:"program,omitempty"`
	Round   int     `json:"round,omitempty"`
	Objects int     `json:"objects,omitempty"`
	Figures figures `json:"figures,omitempty"`
	// Commit is the commit of yare.
	Commit string `json:"commit,omitempty"`
	Setup  setup  `json:"setup,omitempty"`
}

// isOf reports whether r belongs to a row with a number of objects.
func (r result) isOf(row string, objects int) bool { return r.Row == row && r.Objects == objects }

// results is the file of all results. A file can be cut off anywhere, and files can be merged by
// concatenation.
type results struct {
	path string
	all  []result
}

// openResults reads the file. A last line that was cut off is dropped.
func openResults(path string) (*results, error) {
	r := &results{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		var each result
		if err := json.Unmarshal(line, &each); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		r.all = append(r.all, each)
	}
	return r, os.Truncate(path, int64(len(whole)))
}

// add keeps a result.
func (r *results) add(each result) error {
	line, err := json.Marshal(each)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	r.all = append(r.all, each)
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// has reports whether a round of a program is kept.
func (r *results) has(row, program string, round, objects int) bool {
	return slices.ContainsFunc(r.all, func(each result) bool {
		return each.isOf(row, objects) && each.Program == program && each.Round == round
	})
}
