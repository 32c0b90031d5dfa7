// Package secure serves the pages of a program over TLS, to the readers whom the cluster allows to read them.
//
//	operator.Main(controller.New(reconcile), secure.New())
package secure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/servercert"
	"github.com/yare-go/yare/operator/secure/internal/authorizer"
)

// New returns a part that adds the flag --listen-secure. With this flag the program serves its pages over TLS, and asks
// the cluster who may read the pages. Without the flag the part does nothing. The command manifests adds the flag,
// unless the program has another address or watches some namespaces only.
//
// A request needs the bearer token of a user with a permission by RBAC: for the method in lower case, and the path as a
// nonResourceURL. The paths /healthz and /readyz are for all.
//
// A PUT of a level, such as 4, to /debug/flags/v sets the level of the log as the flag -v does, until the program ends. A
// program with a Log in its operator.Program does not have that page.
//
// The part adds 0.3 MB to a program, most of which is TLS for servers.
func New() operator.Part { return part{} }

// part is the part of [New].
type part struct{}

// Needs returns the needs of a service, which does not keep a program running. The needs of the flag are those of
// access.
func (part) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }

// Start does nothing: the program starts the feature before its parts.
func (part) Start(context.Context, *controller.Runtime) error { return nil }

// FeatureName returns the name of the feature: see [feature.Bringer].
func (part) FeatureName() string { return "operator/secure" }

// NewFeature returns the pages over TLS: see [feature.Bringer].
func (part) NewFeature() feature.Feature { return new(securePages) }

// securePages are the pages of a program over TLS.
type securePages struct {
	program *feature.Program
	// address is the address of the pages, or empty.
	address string
	// cert and key are the files of the certificate. Both are set, or none.
	cert, key string
	// secret is the Secret with the certificate for an installation, or empty.
	secret string
}

// Declare returns the flags of the pages: see [feature.Feature].
func (p *securePages) Declare(program *feature.Program) (feature.Declaration, error) {
	p.program = program
	return feature.Declaration{
		Flags: []feature.Flag{
			{
				Name: "listen-secure", Set: feature.SetAddress(&p.address),
				Help: "serve them there over TLS instead, such as on :8443. " +
					"All but /healthz and /readyz need the bearer token of somebody who may get them by RBAC",
			},
			{
				Name: "tls-cert", Set: feature.SetText(&p.cert),
				Help: "the certificate for --listen-secure, which is read again when it changes. " +
					"Default: a self-signed one, which is renewed",
			},
			{Name: "tls-key", Set: feature.SetText(&p.key), Help: "the key of --tls-cert"},
			{Name: "tls-secret", Set: feature.SetLabel(&p.secret, "the name of the Secret"),
				Help: "the Secret with the certificate for --listen-secure: tls.crt, tls.key and ca.crt"},
		},
		Check: p.check,
	}, nil
}

// check returns the permissions for the flags, or what is wrong with them together.
func (p *securePages) check() ([]kube.Access, error) {
	pages := &p.program.Pages
	switch {
	case pages.Address != "" && p.address != "":
		return nil, errors.New("give one of --listen and --listen-secure: both serve the same pages")
	case (p.cert == "") != (p.key == ""):
		return nil, errors.New("--tls-cert and --tls-key belong together: give both, or none for a self-signed certificate")
	case p.cert != "" && p.address == "":
		return nil, errors.New("--tls-cert and --tls-key are for --listen-secure: give it an address, such as :8443")
	case p.address == "":
		return nil, nil
	}
	p.setAddress(p.address)
	return access(), nil
}

// setAddress makes address that of the pages of the program.
func (p *securePages) setAddress(address string) {
	p.address = address
	p.program.Pages.Address, p.program.Pages.Flag, p.program.Pages.IsChecked = address, "--listen-secure", true
}

// access returns the permissions to ask the cluster for the user of a request, and for the permissions of the user.
func access() []kube.Access {
	return []kube.Access{
		{Resource: authorizer.TokenReviews(), Verbs: []wire.Verb{wire.VerbCreate}},
		{Resource: authorizer.SubjectAccessReviews(), Verbs: []wire.Verb{wire.VerbCreate}},
	}
}

// Install adds --listen-secure, unless a flag gives another address, and the certificate of --tls-secret.
func (p *securePages) Install(plan *feature.Plan) error {
	// Reviews of tokens need a ClusterRole, which a program for some namespaces has not.
	if p.program.Pages.Address == "" && len(p.program.Watched) == 0 {
		p.setAddress(":8443")
		plan.Args = append(plan.Args, "--listen-secure="+p.address)
		plan.Access = append(plan.Access, access()...)
	}
	switch isSecure := p.address != ""; {
	case p.secret != "" && !isSecure:
		return errors.New("--tls-secret is for --listen-secure: give it an address, such as :8443")
	case p.secret != "" && p.cert != "":
		return errors.New("--tls-secret and --tls-cert exclude each other: both name the certificate")
	case plan.HasServiceMonitor && isSecure && p.secret == "":
		return errors.New(
			"--service-monitor with --listen-secure needs --tls-secret: Prometheus would show its token to whoever answers, " +
				"because it cannot verify a self-signed certificate")
	}
	if plan.TLSSecret = p.secret; p.secret != "" {
		plan.Args = append(plan.Args, "--tls-cert="+manifests.TLSFolder+"/tls.crt",
			"--tls-key="+manifests.TLSFolder+"/tls.key")
	}
	return nil
}

// Start opens the address of --listen-secure, and serves the pages there to whom the cluster allows to read them.
func (p *securePages) Start(ctx context.Context, h *feature.Host) error {
	if p.address == "" {
		return nil
	}
	client, err := h.NewClient()
	if err != nil {
		return err
	}
	certificates, err := p.certificates(h.Runtime.Log)
	if err != nil {
		return err
	}
	listener, err := feature.Listen(ctx, "--listen-secure", p.address)
	if err != nil {
		return err
	}
	h.Runtime.Log.Info("serving health and metrics over TLS", "address", listener.Addr().String())
	h.AddCertificate("pages", certificates.End)
	if h.SetVerbosity != nil {
		if err := h.AddPage("PUT "+verbosityPath, verbosityPage(h)); err != nil {
			return err
		}
	}
	readers := authorizer.New(h.WithHandlers(client), p.program.Pages.BrowserPaths, h.Runtime.Log)
	h.Serve(servercert.Listen(listener, certificates), func(pages http.Handler) http.Handler {
		return readers.Handler(pages, "/healthz", "/readyz")
	})
	return nil
}

// verbosityPath is where the kubelet and other components of Kubernetes change the level of their log.
const verbosityPath = "/debug/flags/v"

// verbosityPage returns a handler that sets the level of the log to the body of a request.
func verbosityPage(h *feature.Host) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16))
		level := strings.TrimSpace(string(body))
		if err != nil || h.SetVerbosity(level) != nil {
			http.Error(w, "the level of the log stays: give a level such as 0 or 4 as the body", http.StatusBadRequest)
			return
		}
		h.Runtime.Log.Info("the level of the log was set", "v", level, "path", verbosityPath)
	}
}

// certificates returns the certificates of --tls-cert or, without that flag, self-signed ones.
func (p *securePages) certificates(log *slog.Logger) (servercert.Certificates, error) {
	if p.cert != "" {
		certificates, err := servercert.FromFiles(p.cert, p.key, log)
		if err != nil {
			return nil, fmt.Errorf("read the certificate that --tls-cert and --tls-key give: %w", err)
		}
		return certificates, nil
	}
	names := []string{"localhost"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	return servercert.SelfSigned(names...), nil
}

// UnreadyReasons returns nothing: the address is open once the program starts its parts.
func (*securePages) UnreadyReasons() []string { return nil }

// End does nothing: the program closes the listener with its pages.
func (*securePages) End() {}
