package feature

import (
	"net"
	"net/http"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Program is a program, as far as its command line says.
type Program struct {
	// Name is the name of the program, and Command is the name of the command, such as run.
	Name, Command string
	// IsDevelopment is true for the command run in yare dev and in explorations.
	IsDevelopment bool
	Pages         Pages
}

// Pages is where a program serves its pages.
type Pages struct {
	// Address is the address, such as :8080, or empty. Flag is the flag that gives the address.
	Address, Flag string
	// IsChecked is true if the pages are served to readers with a permission only.
	IsChecked bool
	// BrowserPath is the path of a page for browsers, or empty. Where readers are checked, a browser asks for a password
	// there.
	BrowserPath string
}

// Plan is what an installation of a program has. The Pages of the [Program] are those of the program that the
// Deployment runs.
type Plan struct {
	// Watched holds the namespaces that the program watches. None means all.
	Watched []string
	// HasServiceMonitor is true if Prometheus is to read the metrics.
	HasServiceMonitor bool
	// Args are further arguments of the Deployment, and Access are further permissions.
	Args   []string
	Access []kube.Access
	// TLSSecret is the Secret that the Pods mount as files of a certificate, or empty.
	TLSSecret string
}

// Host is what a program lends to its features while it runs.
type Host struct {
	Runtime *controller.Runtime
	// Reconciled are the resources that the controllers reconcile.
	Reconciled []wire.Resource
	// UncachedStreams returns the streams that the parts follow without the cache.
	UncachedStreams func() []follow.StreamState
	// AddPage adds a page to those of the program. It returns an error if the pattern of [http.ServeMux] is not valid or
	// conflicts with another.
	AddPage func(pattern string, handler http.Handler) error
	// Serve serves what a listener accepts, with the limits of the pages, once all features have started. wrap returns the
	// handler of the requests. It gets the handler of all pages. The program closes the listener when it ends its pages.
	Serve func(listener net.Listener, wrap func(pages http.Handler) http.Handler)
	// NewClient returns a client with connections of its own. A standby can write with it too.
	NewClient func() (*kube.Client, error)
	// AddCertificate adds a certificate to the metrics. end returns when the certificate ends. use says what it is for,
	// such as pages.
	AddCertificate func(use string, end func() (time.Time, error))
	// CertificateEnds returns when the certificates of the program end, by what they are for.
	CertificateEnds func() map[string]time.Time
	// Leadership returns whether the replica leads, in words. It returns an empty text without leader election.
	Leadership func() string
	// UnreadyReasons returns why the program is not ready.
	UnreadyReasons func() []string
	// Version is the text about the versions of the program, of yare and of Go.
	Version string
	// Memory returns the memory of the process in bytes: what is in RAM, what the heap holds, and the limit of the garbage
	// collector.
	Memory func() (resident, heap, limit float64)
}
