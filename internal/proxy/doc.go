// Package proxy is the reverse proxy in front of an API server. yaretest, explorations and bench use it.
//
// A program reaches the server through a [Session], which has a token and a kubeconfig of its own. Each request and its
// answer are an [Exchange], which passes the hooks of the proxy and is recorded:
//
//	             token            journal                           rights of Options.Target
//	program ──► Session ──► Exchange ──► Hook ──► Hook ──► … ──► Upstream ──► API server
//	        ◄── CutOff   ◄── Code    ◄── RoundTrip      ◄──  Answered    ◄──
//
// A [Hook] refuses, changes, delays or breaks what passes. Example: a hook that refuses all deletions.
//
//	func (noDeletions) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
//		if x.Verb == wire.VerbDelete {
//			return proxy.Answer(proxy.NewStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no deletions")), nil
//		}
//		return next(r)
//	}
//
//	p, err := proxy.New(proxy.Options{Target: config, Hooks: []proxy.Hook{noDeletions{}}})
//	session, err := p.NewSession("operator")
//	err = os.WriteFile("kubeconfig", session.Kubeconfig(), 0o600)
//
// The package has the hooks that explorations need besides faults: [Confinement] confines a program to a namespace,
// [JSONAnswers] makes answers readable, [WriteRecorder] records what writes have led to, [ReadRecorder] records which
// versions a program has read, and [Watches] passes watches through a [Gate], event by event. Package faults has the
// faults, as one hook and gate.
//
// With Options.HasPoints each request has a [Point], a name that is the same in another run.
package proxy
