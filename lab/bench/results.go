package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// figures are measured values, by name. The sections in report.go have the names and units.
type figures map[string]float64

// result is one line of results.jsonl: a round of a program in a row, or the setup of a run.
type result struct {
	Row     string  `json:"row,omitempty"`
	Program string  `json:"program,omitempty"`
	Round   int     `json:"round,omitempty"`
	Objects int     `json:"objects,omitempty"`
	Figures figures `json:"figures,omitempty"`
	// Commit is the commit of yare.
	Commit string `json:"commit,omitempty"`
	Setup  *setup `json:"setup,omitempty"`
}

// results is the file of all results. A file can be cut off anywhere, and files can be merged by
// concatenation.
type results struct {
	file *os.File
	all  []result
}

func openResults(path string) (*results, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	r := &results{file: file}
	if err := r.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return r, nil
}

// read reads all lines, and drops a last line that was cut off.
func (r *results) read() error {
	in := bufio.NewReader(r.file)
	var end int64
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if err := r.file.Truncate(end); err != nil {
				return err
			}
			_, err := r.file.Seek(end, io.SeekStart)
			return err
		}
		if err != nil {
			return err
		}
		var each result
		if err := json.Unmarshal(line, &each); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		r.all, end = append(r.all, each), end+int64(len(line))
	}
}

// add keeps a result.
func (r *results) add(each result) error {
	line, err := json.Marshal(each)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return err
	}
	r.all = append(r.all, each)
	return nil
}

// has reports whether a round of a program is kept.
func (r *results) has(row, program string, round, objects int) bool {
	for _, each := range r.all {
		if each.Row == row && each.Program == program && each.Round == round && each.Objects == objects {
			return true
		}
	}
	return false
}

// Close closes the file.
func (r *results) Close() error { return r.file.Close() }
