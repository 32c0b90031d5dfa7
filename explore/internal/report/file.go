package report

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/yare-go/yare/explore/internal/finding"
)

// WriteFile writes a record to a file: as a page if the name ends in .html, else as JSON. Only the user may read the
// file, because a record has objects of the user.
func WriteFile(path string, r finding.Record) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Chmod(0o600); err != nil { // of a file that existed before
		return err
	}
	if strings.HasSuffix(path, ".html") {
		err = HTML(file, r)
	} else {
		encoder := json.NewEncoder(file)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(r)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Close()
}

// ReadFile returns the record that WriteFile has written as JSON.
func ReadFile(path string) (r finding.Record, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is no record of an exploration in JSON: %w", path, err)
	}
	return r, nil
}

// Summary returns a finding in one line.
func Summary(f finding.Finding) string {
	var what []string
	for _, each := range f.Schedule.Faults {
		what = append(what, each.String())
	}
	if len(what) == 0 {
		for _, step := range f.Schedule.Steps {
			what = append(what, step.Name)
		}
	}
	return fmt.Sprintf("%s (%d of %d): %s", strings.Join(what, ", "), f.Seen, f.Tries, f.Differences)
}
