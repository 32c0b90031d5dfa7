package operator

import (
	"context"

	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// Call describes the request of a user that a function of [Validate] or [Default] is called about.
type Call struct {
	User User
	// Operation is CREATE, UPDATE or DELETE.
	Operation string
	// DryRun is true if nothing will be stored.
	DryRun bool
	// Subresource is scale for a write of the scale, and else empty.
	Subresource string
}

// User is who made a request, as the API server has authenticated it.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// CallOf returns the request that ctx belongs to. ctx is the context of a function of [Validate] or [Default]. For
// another context CallOf returns the zero Call.
func CallOf(ctx context.Context) Call {
	c := admission.CallOf(ctx)
	return Call{User: User(c.User), Operation: c.Operation, DryRun: c.DryRun, Subresource: c.Subresource}
}

// Warn shows a text to the user whose request ctx belongs to, as kubectl shows warnings. ctx is the context of a
// function of [Validate] or [Default]. The text is cut to 256 characters, and all texts of a call are cut to 4,096
// characters together (the bounds of API servers). For another context Warn does nothing.
func Warn(ctx context.Context, text string) { admission.Warn(ctx, text) }
