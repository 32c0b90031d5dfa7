package admission

import (
	"context"
	"sync"
	"unicode/utf8"
)

// User is who made a request.
type User struct {
	Name   string              `json:"username"`
	UID    string              `json:"uid"`
	Groups []string            `json:"groups"`
	Extra  map[string][]string `json:"extra"`
}

// Call describes the request that a webhook is called about.
type Call struct {
	User User
	// Operation is CREATE, UPDATE or DELETE.
	Operation string
	// DryRun is true if nothing will be stored.
	DryRun bool
	// Subresource is the subresource of the request, such as scale or eviction. It is empty for the object itself.
	Subresource string
}

// The bounds of API servers for warnings, in characters: of one warning, and of all warnings of an answer.
const (
	maxWarning  = 256
	maxWarnings = 4096
)

// callState is what the context of a call carries.
type callState struct {
	Call

	mu       sync.Mutex
	warnings []string
	// length is the number of characters in warnings.
	length int
}

type callKey struct{}

// CallOf returns the request that the webhook with this context is called about. Outside of a call it returns the zero
// Call, which has no operation.
func CallOf(ctx context.Context) Call {
	if s, ok := ctx.Value(callKey{}).(*callState); ok {
		return s.Call
	}
	return Call{}
}

// Warn shows a text to the user who made the request, as kubectl shows warnings. The text is cut to 256 characters,
// and all warnings of a call are cut to 4,096 characters together. Outside of a call Warn does nothing. Warn may be
// called concurrently.
func Warn(ctx context.Context, text string) {
	if s, ok := ctx.Value(callKey{}).(*callState); ok {
		s.addWarning(text)
	}
}

// addWarning adds a warning. The API server drops a warning with control characters or invalid UTF-8. So control
// characters become spaces, and what is not valid becomes U+FFFD.
func (s *callState) addWarning(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var warning []byte
	place := min(maxWarning, maxWarnings-s.length)
	for _, r := range text {
		if place == 0 {
			break
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			r = ' '
		}
		warning = utf8.AppendRune(warning, r)
		place--
		s.length++
	}
	if warning != nil {
		s.warnings = append(s.warnings, string(warning))
	}
}

// currentWarnings returns the warnings so far.
func (s *callState) currentWarnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.warnings[:len(s.warnings):len(s.warnings)]
}
