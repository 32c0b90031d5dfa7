package feature

import (
	"net"
	"net/http"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
)

// Program is a program, as far as its parts and its command line say.
type Program struct {
	// Name is the name of the program, and Command is the name of the command, such as run.
	Name, Command string
	// Version is the text about the versions of the program, of yare and of Go.
	Version string
	// IsDevelopment is true in yare dev and in explorations, for the command run and for operator.Run. IsTest is true in the
	// process of a test, which goes on after the program. IsStrict is true if the program refuses requests that its parts do
	// not declare, and fails on a mistake of its author: for the command run in development, and for operator.Run in a test.
	IsDevelopment, IsTest, IsStrict bool
	// Parts are the parts of the program, each followed by the parts inside of it. Needs are those of all parts together.
	Parts []any
	Needs kube.Needs
	// Watched holds the namespaces that the program watches. None means all.
	Watched []string
	// Namespace is where the program runs, or is to be installed. Pod is its Pod, or empty. The command run sets both
	// before Start.
	Namespace, Pod string
	Pages          Pages
}

// Pages is where a program serves its pages.
type Pages struct {
	// Address is the address, such as :8080, or empty. Flag is the flag that gives the address. For the command manifests,
	// the Install of operator/secure may set both, after the Check of all features.
	Address, Flag string
	// IsChecked is true if the pages are served to readers with a permission only.
	IsChecked bool
	// BrowserPaths are the paths of pages for browsers. Where readers are checked, a browser asks for a password there, and
	// for the paths below.
	BrowserPaths []string
}

// Plan is what an installation of a program has. The Pages of the [Program] are those of the program that the
// Deployment runs.
type Plan struct {
	// Name is the name of the objects, and Namespace is where the program is installed.
	Name, Namespace string
	// HasServiceMonitor is true if Prometheus is to read the metrics.
	HasServiceMonitor bool
	// ProbesPort is the port at which the program serves its health.
	ProbesPort int
	// Args are further arguments of the Deployment, and Access are further permissions.
	Args   []string
	Access []kube.Access
	// TLSSecret is the Secret that the Pods mount as files of a certificate, or empty.
	TLSSecret string
	// EndTime is how long the program takes to end at most. A feature may raise it.
	EndTime time.Duration
	// IsCalled is true if API servers call the program. Then the installation has a Service, and its program knows the
	// name and the namespace for which the manifests were printed.
	IsCalled bool
	// Edits change the objects of the installation, which are decoded JSON. The last object is the Deployment.
	Edits []func(objects []map[string]any) ([]map[string]any, error)
	// Notes are lines for the user.
	Notes []string
}

// Host is what a program lends to its features while it runs.
type Host struct {
	// Runtime is what the parts get.
	Runtime *controller.Runtime
	// Client reaches the server while the replica leads. It has neither a cache nor the handlers of the parts.
	Client *kube.Client
	// NewClient returns a client for requests of a standby too, with the field manager of the program. It has neither a
	// cache nor the handlers of the parts.
	NewClient func() (*kube.Client, error)
	// WithHandlers returns a client with the handlers that the program adds to the requests of its parts.
	WithHandlers func(*kube.Client) *kube.Client
	// UncachedStreams returns the streams that the parts follow without the cache.
	UncachedStreams func() []follow.StreamState
	// AddPage adds a page to those of the program, which a program without an address does not serve. It returns an error if
	// the pattern of [http.ServeMux] is not valid or
	// conflicts with another.
	AddPage func(pattern string, handler http.Handler) error
	// Serve serves what a listener accepts, with the limits of the pages, once all features have started. It serves nothing
	// unless the program has an address for pages or for its health, or checked readers, or a feature that is an [Observer].
	// wrap returns the handler of the requests. It gets the handler of all pages. The program closes the listener when it
	// ends its pages.
	Serve func(listener net.Listener, wrap func(pages http.Handler) http.Handler)
	// AddCertificate adds a certificate to the metrics and to CertificateEnds. end returns when the certificate ends. use
	// says what it is for, such as pages.
	AddCertificate func(use string, end func() (time.Time, error))
	// CertificateEnds returns when the certificates of the program end, by what they are for.
	CertificateEnds func() map[string]time.Time
	// Leadership returns whether the replica leads, in words. It returns an empty text without leader election.
	Leadership func() string
	// UnreadyReasons returns why the program is not ready.
	UnreadyReasons func() []string
	// Metrics gets the metrics of the feature. It is nil if nobody can read them.
	Metrics *metrics.Registry
	// AreSubscribed reports whether all controllers have subscribed to their streams. It is nil without Metrics.
	AreSubscribed func() bool
	// SetVerbosity sets the level of the log to the value of a flag -v. It is nil if a handler of the author decides the
	// level. It may be called concurrently.
	SetVerbosity func(text string) error
	// Ending is closed when the program begins to end.
	Ending <-chan struct{}
	// Fail ends the program with an error.
	Fail func(error)
}
