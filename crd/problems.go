package crd

import (
	"fmt"
	"slices"
	"strings"
)

// problems collects the problems of one root type.
type problems struct {
	// sources has the positions of declarations. It may be nil.
	sources *sources
	all     []error
}

// addf adds a problem of the type or field called name, with the file and the line that declare it if the Source of the
// Definition has them.
func (p *problems) addf(name, format string, args ...any) {
	if at := p.sources.declaredAt(name); at != "" {
		name = at + ": " + name
	}
	p.add(fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
}

// addLines adds each line of err as a problem of the type or field called name.
func (p *problems) addLines(name string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		p.addf(name, "%s", line)
	}
}

// add adds err once: a type that is used twice has the same problem twice.
func (p *problems) add(err error) {
	if !slices.ContainsFunc(p.all, func(o error) bool { return o.Error() == err.Error() }) {
		p.all = append(p.all, err)
	}
}
