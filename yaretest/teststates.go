package yaretest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/yare-go/yare/internal/clock"
)

// testStates holds the namespaces and clocks of the tests that use a cluster, by the names of the tests.
type testStates struct {
	mu         sync.Mutex
	namespaces map[string][]string
	clocks     map[string]*clock.Clock
}

func newTestStates() *testStates {
	return &testStates{namespaces: make(map[string][]string), clocks: make(map[string]*clock.Clock)}
}

// addNamespace records, until t ends, that t has made a namespace.
func (s *testStates) addNamespace(t testing.TB, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	test := t.Name()
	s.namespaces[test] = append(s.namespaces[test], namespace)
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.namespaces[test] = slices.DeleteFunc(s.namespaces[test], func(each string) bool { return each == namespace })
		if len(s.namespaces[test]) == 0 {
			delete(s.namespaces, test)
		}
	})
}

// namespacesFor returns the namespaces that a test and the tests around it have made.
func (s *testStates) namespacesFor(test string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		names = append(names, s.namespaces[test]...)
		slash := strings.LastIndexByte(test, '/')
		if slash < 0 {
			return names
		}
		test = test[:slash]
	}
}

// clockFor returns the clock of the programs of t, which it makes if there is none.
func (s *testStates) clockFor(t testing.TB) *clock.Clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	test := t.Name()
	c := s.clocks[test]
	if c == nil {
		c = clock.New()
		s.clocks[test] = c
		t.Cleanup(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.clocks, test)
		})
	}
	return c
}
