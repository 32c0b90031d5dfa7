package profiles_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/securepages"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/profiles"
	"github.com/yare-go/yare/operator/secure"
	"github.com/yare-go/yare/yaretest"
)

// programVariable names the program that this test binary is.
const programVariable = "YARE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	wait := operator.Task("wait", func(ctx context.Context, _ *controller.Runtime) error { <-ctx.Done(); return nil })
	parts := map[string][]operator.Part{"with": {wait, secure.New(), profiles.New()}, "without": {wait}}
	if all, ok := parts[os.Getenv(programVariable)]; ok {
		operator.Program{Name: "lamps", Parts: func() ([]operator.Part, error) { return all, nil }}.Main()
	}
	os.Exit(m.Run())
}

// start starts the program with --listen-secure as an account, and returns its address.
func start(t *testing.T, account *yaretest.ServiceAccount, args ...string) (address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := yaretest.Run(t, account.Kubeconfig(), "/usr/bin/env", append([]string{programVariable + "=with", self, "run", "--listen-secure", "127.0.0.1:0"}, args...)...)
	return securepages.AddressOf(t, p)
}

// Profiles are for those whom the cluster allows to get them, and only with --pprof.
func TestProfiles(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	account, reader, stranger := cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace)
	account.Allow(t, "", rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}})
	reader.Allow(t, "", rbacv1.PolicyRule{NonResourceURLs: []string{"/debug/pprof/*"}, Verbs: []string{"get"}})
	securepages.WaitUntilAllowed(t, reader, "/debug/pprof/heap", "get")
	allowed, denied := reader.Config(t).BearerToken, stranger.Config(t).BearerToken
	address := start(t, account, "--pprof")
	for _, test := range []struct {
		path, token string
		code        int
		text        string
	}{
		{"heap", "", 401, "bearer token"},
		{"heap", denied, 403, "nonResourceURLs"},
		{"profile?seconds=1", denied, 403, "nonResourceURLs"},
		{"", allowed, 200, "goroutine"},
		{"goroutine?debug=2", allowed, 200, "operator.Task"},
		{"trace?seconds=0.1", allowed, 200, "go 1."},
		{"cmdline", allowed, 404, "Unknown profile"}, // it has no samples, and can have secrets
	} {
		if code, body := securepages.Get(t, address, "/debug/pprof/"+test.path, test.token); code != test.code || !strings.Contains(body, test.text) {
			t.Errorf("%s: %d %.200s, want %d with %q", test.path, code, body, test.code, test.text)
		}
	}
	for _, path := range []string{"heap?gc=1", "allocs", "profile?seconds=1"} {
		code, body := securepages.Get(t, address, "/debug/pprof/"+path, allowed)
		if code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
			continue
		}
		if _, err := gzip.NewReader(strings.NewReader(body)); err != nil {
			t.Errorf("%s is no profile: %v", path, err)
		}
	}
	// go tool pprof reads what the program serves.
	_, profile := securepages.Get(t, address, "/debug/pprof/goroutine", allowed)
	file := t.TempDir() + "/goroutine"
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", file).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("runtime.gopark")) {
		t.Errorf("go tool pprof: %v: %s", err, out)
	}
	// Without the flag nobody can read a profile.
	address = start(t, account)
	if code, body := securepages.Get(t, address, "/debug/pprof/heap", allowed); code != 404 {
		t.Errorf("without --pprof: %d %.200s", code, body)
	}
}

// The flag needs checked readers, and is no flag of a program without the part.
func TestProfilesAreGuarded(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		program, args string
		status        int
		want          string
	}{
		{"with", "--pprof", 2, "--pprof is for readers with a permission: give it --listen-secure"},
		{"with", "--pprof --listen 127.0.0.1:0", 2, "give it --listen-secure"},
		{"with", "manifests --image i:1 --pprof --listen :8080", 2, "give it --listen-secure"},
		{"with", "manifests --image i:1 --pprof --watch-namespace a", 1, "give it --listen-secure"},
		{"with", "manifests --image i:1 --pprof", 0, "- --pprof=true"},
		{"with", "--help", 0, "A dump of the"},
		{"without", "--pprof", 1, "import github.com/yare-go/yare/operator/profiles and add profiles.New() to the parts"},
	} {
		cmd := exec.CommandContext(t.Context(), self, strings.Fields(test.args)...)
		cmd.Env = append(os.Environ(), programVariable+"="+test.program)
		out, err := cmd.CombinedOutput()
		if err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		if status := cmd.ProcessState.ExitCode(); status != test.status || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: status %d, want %d with %q: %s", test.args, status, test.status, test.want, out)
		}
	}
}
