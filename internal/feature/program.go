package feature

import (
	"net"
	"net/http"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// Program is a program, as far as its command line says.
type Program struct {
	// Name is the name of the program, and Command is the name of the command, such as run.
	Name, Command string
	// IsDevelopment is true in yare dev.
	IsDevelopment bool
	Pages         Pages
}

// Pages is where a program serves its pages.
type Pages struct {
	// Address is an address without a check of the readers, such as :8080, or empty.
	Address string
	// IsChecked is true if the pages are served to readers with a permission only.
	IsChecked bool
	// BrowserPath is the path of a page for browsers, or empty. Where readers are checked, a browser asks for a password there.
	BrowserPath string
}

// Plan is what an installation of a program has.
type Plan struct {
	// Pages are those of the program that the Deployment runs.
	Pages Pages
}

// Host is what a program lends to its features while it runs.
type Host struct {
	Runtime *controller.Runtime
	// Reconciled are the resources that the controllers reconcile.
	Reconciled []wire.Resource
	// UncachedStreams returns the streams that the parts follow without the cache.
	UncachedStreams func() []follow.StreamState
	// AddPage adds a page to those of the program. It returns an error if the pattern of [http.ServeMux] conflicts with another.
	AddPage func(pattern string, handler http.Handler) error
	// Serve serves by handler what a listener accepts, with the limits of the pages. The program closes the listener when it ends
	// its pages.
	Serve func(listener net.Listener, handler http.Handler)
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
