package livepage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.uber.org/goleak"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/livepage"
	"github.com/yare-go/yare/operator/secure"
)

// Gadget is what the programs of the tests reconcile.
type Gadget = kube.CustomResource[gadgetSpec, kube.None]

type gadgetSpec struct {
	Size int `json:"size"`
}

func (gadgetSpec) Definition() kube.Definition {
	return kube.Definition{Group: "page.example.com", Version: "v1", Kind: "Gadget"}
}

// programVariable names the program that this test binary is.
const programVariable = "YARE_TEST_PROGRAM"

const (
	programWithPage    = "with"
	programWithoutPage = "without"
)

func TestMain(m *testing.M) {
	part := controller.New(reconcile, controller.Owns[corev1.ConfigMap](), controller.Owns[corev1.Secret]())
	switch os.Getenv(programVariable) {
	case programWithPage:
		run(livepage.New(), part, secure.New())
	case programWithoutPage:
		run(part, secure.New())
	}
	os.Exit(m.Run())
}

// run runs parts as the program gadgets, and does not return.
func run(parts ...operator.Part) {
	operator.Program{Name: "gadgets", Parts: func() ([]operator.Part, error) { return parts, nil }}.Main()
}

// secretText is in the Secrets that reconcile writes.
const secretText = "a-secret-text"

// reconcile writes the size of g into a ConfigMap and a Secret. A size of 13 fails.
func reconcile(ctx context.Context, g *Gadget, c *kube.Client) (controller.Action, error) {
	meta := metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": fmt.Appendf(nil, "%s%d", secretText, g.Spec.Size)}}
	_, err := kube.Apply(ctx, c, kube.OwnedBy(g, secret))
	if err == nil {
		config := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"size": fmt.Sprint(g.Spec.Size)}}
		_, err = kube.Apply(ctx, c, kube.OwnedBy(g, config))
	}
	if g.Spec.Size == 13 {
		return controller.Done(), errors.New("13 is no size")
	}
	return controller.RequeueAfter(time.Hour), err
}

// call runs a program with args, and returns its status and output.
func call(t *testing.T, program string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), programVariable+"="+program)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// The page shows the contents of objects. So it is served only where the reader is checked, or on loopback, and only if the
// program has the part.
func TestWhereTheLivePageIsServed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program, args string
		status        int
		want          string
	}{
		{programWithPage, "--live-page", 2, "--live-page shows the contents of objects: give it --listen-secure"},
		{programWithPage, "--live-page --listen :8080", 2, "--listen with a loopback address"},
		{programWithPage, "--live-page --listen 10.0.0.1:8080", 2, "--listen with a loopback address"},
		{programWithPage, "--live-page --listen-probes 127.0.0.1:8080", 2, "give it --listen-secure"},
		{programWithPage, "--live-page=perhaps --listen-secure :8443", 2, `invalid value "perhaps" for flag -live-page`},
		{programWithoutPage, "--live-page --listen 127.0.0.1:8080", 1, "add livepage.New() to the parts"},
		{programWithoutPage, "permissions --live-page --listen-secure :8443", 1, "import github.com/yare-go/yare/operator/livepage"},
		{programWithPage, "permissions --live-page --listen-secure :8443", 0, ""},
		{programWithPage, "permissions --live-page --listen localhost:8080", 0, ""},
		{programWithPage, "permissions --live-page=false --listen :8080", 0, ""},
		{programWithPage, "manifests --image i:1 --live-page", 0, ""},
		{programWithPage, "manifests --image i:1 --live-page --watch-namespace a", 1, "--live-page in a cluster needs --listen-secure"},
		{programWithPage, "permissions --live-page --listen [::1]:8080", 0, ""},
		{programWithPage, "crd --live-page", 2, "-live-page"},
	} {
		status, _, stderr := call(t, test.program, strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: status %d, want %d with %q: %s", test.args, status, test.status, test.want, stderr)
		}
	}
	if _, manifests, _ := call(t, programWithPage, "manifests", "--image", "i:1", "--live-page"); !strings.Contains(manifests, "--live-page=true") {
		t.Errorf("the Deployment does not get the flag:\n%s", manifests)
	}
	for program, want := range map[string]bool{programWithPage: true, programWithoutPage: false} {
		if _, help, _ := call(t, program, "--help"); strings.Contains(help, "--live-page") != want {
			t.Errorf("the help of the program %s the page is:\n%s", program, help)
		}
	}
}

// A program with the page ends at once, also while somebody reads the page.
func TestLivePageFromStartToEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	folder, err := os.MkdirTemp("", "yare-page-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "socket")
	t.Setenv("YARE_LIVE_PAGE_SOCKET", socket) // as yare dev does
	t.Setenv(access.CheckVariable, "1")
	server := fakeserver.New()
	if _, err := kube.Namespaced[Gadget](server.Client(), "default").Create(t.Context(), &Gadget{ObjectMeta: metav1.ObjectMeta{Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	part := controller.New(func(context.Context, *Gadget, *kube.Client) (controller.Action, error) {
		return controller.Done(), errors.New("a <b>bad</b> day")
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- operator.Run(ctx, server.Client(), part, livepage.New()) }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	ask := func(url string) (int, string) {
		response, err := client.Get(url)
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, readAll(response)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		code, text := ask("http://localhost/live-page?name=ON&cause=gadget")
		missing := ""
		for _, want := range []string{"a &lt;b&gt;bad&lt;/b&gt; day", "Gadget", "default/", "gadgets.page.example.com", "no leader election", "again in"} {
			if !strings.Contains(text, want) {
				missing = want
			}
		}
		if code == 200 && missing == "" {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%d without %q:\n%s", code, missing, text)
		}
	}
	if code, text := ask("http://localhost/live-page?kind=Other"); code != 200 || strings.Contains(text, `class="row`) {
		t.Errorf("another kind: %d %s", code, text)
	}
	// A web site that names this machine by a name of its own reads nothing.
	if code, text := ask("http://evil.example/live-page"); code != http.StatusForbidden {
		t.Errorf("for another host the answer is %d %s", code, text)
	}
	// A reader of events is there until the end.
	response, err := client.Get("http://localhost/live-page/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	began := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
}

// Without the flag and outside of yare dev the part does nothing.
func TestLivePageIsOffByDefault(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("YARE_LIVE_PAGE_SOCKET", filepath.Join(folder, "socket"))
	t.Setenv(access.CheckVariable, "")
	done := operator.Task("nothing", func(context.Context, *controller.Runtime) error { return nil })
	if err := operator.Run(t.Context(), fakeserver.New().Client(), livepage.New(), done); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("there is a page at %v: %v", entries, err)
	}
}

// readAll returns the body of an answer, or the error.
func readAll(response *http.Response) string {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
