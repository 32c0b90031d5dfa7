package yaretest

import (
	"strings"
	"sync"
	"testing"

	"github.com/yare-go/yare/internal/clock"
)

// testStates holds the states of the tests that use a cluster, by the names of the tests.
type testStates struct {
	mu     sync.Mutex
	states map[string]*testState
}

// testState is what the programs of a test share.
type testState struct {
	// namespaces are the namespaces that the test has made.
	namespaces []string
	clock      *clock.Clock
}

func newTestStates() *testStates { return &testStates{states: make(map[string]*testState)} }

// addNamespace records, until t ends, that t has made a namespace.
func (s *testStates) addNamespace(t testing.TB, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.stateLocked(t)
	state.namespaces = append(state.namespaces, namespace)
}

// clockFor returns the clock of the programs of t.
func (s *testStates) clockFor(t testing.TB) *clock.Clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stateLocked(t).clock
}

// stateLocked returns the state of t, which it makes if there is none. It drops the state after t.
func (s *testStates) stateLocked(t testing.TB) *testState {
	test := t.Name()
	if s.states[test] == nil {
		s.states[test] = &testState{clock: clock.New()}
		t.Cleanup(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.states, test)
		})
	}
	return s.states[test]
}

// namespacesFor returns the namespaces that a test and the tests around it have made.
func (s *testStates) namespacesFor(test string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if state := s.states[test]; state != nil {
			names = append(names, state.namespaces...)
		}
		slash := strings.LastIndexByte(test, '/')
		if slash < 0 {
			return names
		}
		test = test[:slash]
	}
}
