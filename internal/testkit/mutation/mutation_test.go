package mutation

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutation is a small change of yare's code that breaks a promise of docs/guarantees.md.
type mutation struct {
	// number is the number of the mutation. It stays when mutations are moved.
	number int
	// promise is the number of the promise.
	promise int
	// folder is the folder of a package, below the root of the module.
	folder string
	// function names the declaration that changes: a function, "Type.Method" without a star,
	// or a constant or variable.
	function string
	// pattern describes one place of the declaration. The package comment explains patterns.
	pattern string
	// replacement is the code in place of the code that fits the pattern.
	replacement string
}

// allMutations returns the mutations in the order of their numbers.
func allMutations() []mutation {
	all := slices.Concat(watchMutations(), kubeMutations(), cacheMutations(), controllerMutations(), operatorMutations())
	slices.SortFunc(all, func(a, b mutation) int { return cmp.Compare(a.number, b.number) })
	return all
}

func (m mutation) String() string {
	return fmt.Sprintf("mutation %d of promise %d (%s in place of %s in %s %s)",
		m.number, m.promise, quotedCode(m.replacement), quotedCode(m.pattern), m.folder, m.function)
}

// identifiers are the identifiers and wildcards of a pattern or replacement.
var identifiers = regexp.MustCompile(`\b[A-Za-z_]\w*`)

// hash returns a hash of the number of the mutation and of the shape of its code, without the names in the
// code. So a rename does not change the hash, and the result of the mutation stays.
func (m mutation) hash() string {
	shape := func(code string) string { return identifiers.ReplaceAllString(code, "x") }
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d\x00%d\x00%s\x00%s", m.number, m.promise, shape(m.pattern), shape(m.replacement))))
	return hex.EncodeToString(sum[:8])
}

// method returns the name of the mutated function without its type.
func (m mutation) method() string { return methodOf(m.function) }

// apply returns the file of the module that a mutation changes. It returns an error if not exactly one place
// of the module fits the mutation.
func (m mutation) apply(module fs.FS) (changedFile, error) {
	p, err := parsePattern(m.pattern)
	if err != nil {
		return changedFile{}, fmt.Errorf("%s: %w", m, err)
	}
	names, err := fs.Glob(module, path.Join(m.folder, "*.go"))
	if err != nil {
		return changedFile{}, err
	}
	var changed []changedFile
	var declared []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		code, err := fs.ReadFile(module, name)
		if err != nil {
			return changedFile{}, err
		}
		if !bytes.Contains(code, []byte(m.method())) {
			continue
		}
		inFile, declaredInFile, err := m.applyToFile(p, name, code)
		if err != nil {
			return changedFile{}, fmt.Errorf("%s: %w", m, err)
		}
		changed, declared = append(changed, inFile...), append(declared, declaredInFile...)
	}
	switch {
	case !slices.Contains(declared, m.function):
		return changedFile{}, fmt.Errorf("%s: package %s declares no %s; it declares %q: change the row in mutations_*_test.go", m, m.folder, m.function, declared)
	case len(changed) != 1:
		return changedFile{}, fmt.Errorf("%s: %d places of %s fit the pattern, not 1: change the row in mutations_*_test.go", m, len(changed), m.function)
	}
	return changed[0], nil
}

// applyToFile returns a file with the mutation for each place of the file that fits. It also returns the names
// of those declarations that have the name of the mutated function or method.
func (m mutation) applyToFile(p pattern, name string, code []byte) (changed []changedFile, declared []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, code, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	source := func(start, end token.Pos) string { return string(code[offset(start):offset(end)]) }
	for function, node := range declarations(file) {
		if methodOf(function) == m.method() {
			declared = append(declared, function)
		}
		if function != m.function {
			continue
		}
		for _, f := range p.find(node, source) {
			replacement, err := f.replace(m.replacement, source)
			if err != nil {
				return nil, nil, err
			}
			text := slices.Concat(code[:offset(f.start)], []byte(replacement), code[offset(f.end):])
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				return nil, nil, fmt.Errorf("the changed code: %w", err)
			}
			changed = append(changed, changedFile{name, text})
		}
	}
	return changed, declared, nil
}

// quotedCode returns code for a message.
func quotedCode(code string) string {
	if code == "" {
		return "nothing"
	}
	return "`" + code + "`"
}

func TestEachPromiseHasMutations(t *testing.T) {
	t.Parallel()
	all := allMutations()
	if len(all) != 100 {
		t.Errorf("there are %d mutations", len(all))
	}
	for i, m := range all {
		if m.number != i+1 {
			t.Errorf("the mutation with the number %d stands in the place of %d", m.number, i+1)
		}
	}
	for promise := 1; promise <= 23; promise++ {
		if !slices.ContainsFunc(all, func(m mutation) bool { return m.promise == promise }) {
			t.Errorf("promise %d has no mutation", promise)
		}
	}
}

// TestMutationsFitTheCode says which mutations a rename of a function, method or constant broke.
func TestMutationsFitTheCode(t *testing.T) {
	t.Parallel()
	module := os.DirFS("../../..")
	for _, m := range allMutations() {
		if _, err := m.apply(module); err != nil {
			t.Error(err)
		}
	}
}
