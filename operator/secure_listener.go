package operator

import (
	"context"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/secure"
)

// SecureListener returns a part that adds the flag --listen-secure. With this flag, the program serves its
// pages over TLS, and asks the cluster who may read the pages. Without the flag the part does nothing.
//
//	operator.Main(controller.New(reconcile), operator.SecureListener())
//
// The part adds 0.3 MB to a program, most of which is TLS for servers.
func SecureListener() Part { return secureListener{} }

// secureListener is the part of [SecureListener].
type secureListener struct{ linkedSecureCode }

// Needs returns the needs of a service, which does not keep a program running. The needs of the flag are
// [securePagesAccess].
func (secureListener) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }

// Start does nothing: the program opens the listener before it starts its parts.
func (secureListener) Start(context.Context, *controller.Runtime) error { return nil }

// securePagesAccess returns the permissions that --listen-secure needs: to ask the cluster for the user of a
// request, and for the permissions of the user.
func securePagesAccess() []kube.Access {
	return []kube.Access{
		{Resource: secure.TokenReviews(), Verbs: []wire.Verb{wire.VerbCreate}},
		{Resource: secure.SubjectAccessReviews(), Verbs: []wire.Verb{wire.VerbCreate}},
	}
}
