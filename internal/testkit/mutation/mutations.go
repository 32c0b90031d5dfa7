package main

import (
	"cmp"
	"fmt"
	"slices"
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

// quotedCode returns code for a message.
func quotedCode(code string) string {
	if code == "" {
		return "nothing"
	}
	return "`" + code + "`"
}
