package operator

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Program describes a program that needs more than parts: flags of its own, another client, or
// pages of its own. [Program.Main] runs the program. The field Parts is required.
//
//	func main() {
//		var bucket string
//		operator.Program{
//			Flags: func(flags *flag.FlagSet) { flags.StringVar(&bucket, "bucket", "", "where backups go") },
//			Parts: func() ([]operator.Part, error) {
//				return []operator.Part{controller.New(reconciler{bucket}.reconcile)}, nil
//			},
//			BeforeRun: func(context.Context) error {
//				if bucket == "" {
//					return errors.New("--bucket is missing")
//				}
//				return nil
//			},
//		}.Main()
//	}
type Program struct {
	// Name is the name of the program: of its Lease, of its field manager, and in the labels and the names of what
	// manifests prints. It is a label of DNS that begins with a letter, such as webapp. A change of the name makes
	// another program of the same code: see "manifests --check". Default: the name of the executable file. A copy of
	// the file under another name is then another program, which leads beside the first one.
	Name string
	// Flags adds flags to the flags of Main. All commands that need the parts accept these
	// flags. The command manifests passes them on to the Deployment. A flag with the name of a
	// built-in flag is an error.
	Flags func(flags *flag.FlagSet)
	// Parts returns the parts of the program. Main calls Parts once, after the flags have been
	// parsed. All commands but version call Parts too, so it
	// must work without a cluster, and without flags that only a running program needs: see BeforeRun.
	// Main prints an error of Parts as it is, and ends. The help then leaves out the kinds.
	Parts func() ([]Part, error)
	// BeforeRun checks and prepares what only a running program needs, such as flags that must be given and
	// connections to other services. The command run alone calls BeforeRun, once in each process, after Parts and
	// before it makes the client and starts the parts. With leader election, a replica calls BeforeRun before it stands
	// by. ctx ends with the first signal. Main prints an error of BeforeRun as it is, and ends with the status 1.
	BeforeRun func(ctx context.Context) error
	// Config changes how the client reaches its server: the user agent, the user to impersonate,
	// a wrapped transport. Main calls Config before it makes the client. Main prints an error of
	// Config as it is, and ends.
	Config func(config *kube.Config) error
	// Handlers returns what the program serves beside its health and metrics, by the patterns of
	// [http.ServeMux]. Main calls Handlers before it starts the parts. An invalid pattern, and a pattern whose
	// path is /metrics, /healthz or /readyz, is an error. Without --listen and --listen-secure nothing is
	// served, which is logged as a warning. The part of package secure brings the flag --listen-secure. With
	// this flag, a request needs the bearer token of a user with a permission by RBAC: for the method in lower
	// case, and the path as a nonResourceURL. An answer may take 30 seconds, unless its handler sets another
	// deadline with [http.ResponseController]. The handlers serve until all parts have ended. A panic of a
	// handler is logged.
	Handlers func(rt *controller.Runtime) map[string]http.Handler
	// Metrics writes further metrics to the page /metrics, in the text format of Prometheus.
	// Several requests may call Metrics concurrently. A metric must not have the name of a metric
	// in docs/metrics.md. A panic is logged, and leaves out what Metrics has written. Module
	// github.com/yare-go/yare/prometheus has a part for a registry of the client library of Prometheus.
	Metrics func(w io.Writer)
	// ReadinessChecks are further conditions of the readiness, by their names, such as database. Each request for /readyz
	// calls all checks. A check may be called concurrently with other checks, and is not called again before it has
	// returned. The answer is 503, with the name and the error, after an error, after a panic, and if the check has not
	// returned after 3 seconds, when its context ends. Everybody who reaches the page can read the error.
	ReadinessChecks map[string]func(ctx context.Context) error
	// Manifests changes the objects that the command manifests prints: see [EditManifest] and
	// [AddManifest]. Main prints an error of Manifests as it is, and ends.
	Manifests func(m *Manifests) error
	// Log receives the log of the program, in place of the standard error stream. Log decides
	// which levels it records, whether or not there is a flag -v. It receives durations as durations.
	Log slog.Handler
	// Tracer records a span for each reconcile, cleanup and request. Module
	// github.com/yare-go/yare/otel adapts OpenTelemetry. Default: none.
	Tracer wire.Tracer
}

// Main runs a program made of parts, and does not return. It is the short form of
// [Program.Main].
func Main(parts ...Part) {
	Program{Parts: func() ([]Part, error) { return parts, nil }}.Main()
}

// Main runs the program, and does not return. Its commands:
//
//	run       run all parts until a signal, or until one of them fails; the default
//	crd       print the CustomResourceDefinitions of all parts as YAML, except those that
//	          belong to another project (Foreign in the Definition), or write each to a file; warn
//	          of what generators of clients lose: see crd.Warnings
//	permissions
//	          print as YAML a ClusterRole and Roles with the permissions that the parts declare; with
//	          --watch-namespace as for run
//	manifests print the objects that install the program in a cluster, or write them as a base
//	          of Kustomize or a chart of Helm
//	uninstall remove what manifests has printed from the cluster
//	version   print the versions of the program, of yare and of Go, from the build information
//
// Features add commands: package conversion has migrate. With --help it explains its flags. The exit status is 0 after SIGINT or SIGTERM, 1 after an
// error, and 2 if the command line is wrong. After a signal the parts may finish. A second
// signal ends the program at once.
//
// With --leader-elect one replica leads, by a Lease of the program's name in its namespace (see
// [controller.Runtime]). --lease-name and --lease-namespace choose another Lease. The other replicas stand by: see
// [OnEveryReplica]. A replica that loses the lease ends at once, with the status 1. --lease-duration sets how soon
// another replica follows after a crash of the leader, from 3s to 5m. Default: 30s.
func (p Program) Main() {
	i := invocation{
		Program: p, file: executableName(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, exit: os.Exit,
	}
	ctx, stop := untilSignal(i.stderr)
	status := i.execute(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. stop releases the context. The
// second signal ends the process.
func untilSignal(stderr io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-signals:
			case <-done:
				return
			}
			if !first {
				fmt.Fprintln(stderr, "stopped at once, by a second signal")
				os.Exit(1)
			}
			cancel()
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel() }
}
