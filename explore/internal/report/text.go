package report

import (
	_ "embed"
	"io"
	"strings"
	"text/template"

	"github.com/yare-go/yare/explore/internal/finding"
)

//go:embed text.tmpl
var textTemplate string

// maxValueLength is how many characters of a value the text shows.
const maxValueLength = 160

// Text writes the findings of a record, and then its coverage.
func Text(w io.Writer, r finding.Record) error {
	layout, err := template.New("text").Funcs(functions()).Parse(textTemplate)
	if err != nil {
		return err
	}
	return write(w, layout, r)
}

// differenceSubject returns the subject of a difference.
func differenceSubject(d finding.Difference) string {
	if d.Check != "" {
		return "check " + d.Check
	}
	return strings.TrimSpace(d.Object + " " + d.Path)
}

// shortValue returns the beginning of a JSON value, or "nothing" if there is no value.
func shortValue(value string) string {
	if value == "" {
		return "nothing"
	}
	return shorten(value, maxValueLength)
}
