package yaretest

import (
	"strings"
	"sync"
	"testing"
)

// failedPrograms records the programs of this test process that have failed. A function that waits knows only its
// test, so no other object is shared by the function and the program.
var failedPrograms programErrors

// programErrors holds the errors of programs, by the names of their tests.
type programErrors struct {
	mu     sync.Mutex
	byTest map[string]error
}

// add records, until t ends, that a program of t has failed with err. The first error of a test stays.
func (p *programErrors) add(t testing.TB, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byTest == nil {
		p.byTest = make(map[string]error)
	}
	if p.byTest[t.Name()] == nil {
		p.byTest[t.Name()] = err
	}
}

// remove removes the error of the programs of t.
func (p *programErrors) remove(t testing.TB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byTest, t.Name())
}

// errorFor returns the error of a program of t, or of a test around t. It returns nil if no program has failed.
func (p *programErrors) errorFor(t testing.TB) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for test := t.Name(); ; {
		if err := p.byTest[test]; err != nil {
			return err
		}
		slash := strings.LastIndexByte(test, '/')
		if slash < 0 {
			return nil
		}
		test = test[:slash]
	}
}
