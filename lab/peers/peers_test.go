package peers

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/yare-go/yare/ctrl"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/yaretest"
)

// TestMain logs what the operators log if PEERS_LOG is set.
func TestMain(m *testing.M) {
	log := logr.Discard()
	if os.Getenv("PEERS_LOG") != "" {
		log = funcr.New(func(prefix, args string) { println(prefix, args) }, funcr.Options{LogTimestamp: true})
	}
	ctrlruntime.SetLogger(log)
	os.Exit(m.Run())
}

// operator is a program of others.
type operator struct {
	scheme *runtime.Scheme
	// options returns the options of the manager, which a manager keeps and changes. The name is another one each time.
	options func(name string) manager.Options
	setUp   func(ctx context.Context, mgr manager.Manager) error
}

// forBoth runs a test beside the operator with the cache and the client of controller-runtime, and then beside the
// operator with those of yare. One of them runs at a time, because both work on the whole cluster. The client of the test
// reads from the server.
func forBoth(t *testing.T, o operator, test func(t *testing.T, c client.Client)) {
	config := clientgo.ToREST(yaretest.Shared(t).Config())
	bridge, err := ctrl.ForConfig(config)
	must(t, err)
	direct, err := client.New(config, client.Options{Scheme: o.scheme})
	must(t, err)
	for _, variant := range []string{"controller-runtime", "yare"} {
		t.Run(variant, func(t *testing.T) {
			options := o.options(variant)
			options.Scheme = o.scheme
			options.Metrics.BindAddress = "0"
			options.Controller.SkipNameValidation = new(true)
			if variant == "yare" {
				options.NewCache, options.NewClient = bridge.NewCache, bridge.NewClient
			}
			mgr, err := manager.New(config, options)
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			must(t, o.setUp(ctx, mgr))
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			t.Cleanup(func() {
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("the manager ended with: %v", err)
				}
			})
			test(t, direct)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// schemeOf returns a scheme with the types that adders add.
func schemeOf(t *testing.T, adders ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range adders {
		must(t, add(scheme))
	}
	return scheme
}

// define makes the CustomResourceDefinitions in a folder of a module.
func define(t *testing.T, module, folder string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	must(t, err)
	defineFrom(t, "", strings.TrimSpace(string(dir))+"/"+folder)
}

// defineFrom makes the CustomResourceDefinitions in a file, a folder, or the text if the path is -.
func defineFrom(t *testing.T, text, path string) {
	t.Helper()
	cluster := yaretest.Shared(t)
	cluster.Kubectl(t, text, "apply", "--server-side", "-f", path)
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=120s", "crd", "--all")
}
