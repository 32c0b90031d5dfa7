package plane

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/plane/console"
)

// The real control plane: compiled if it is not in the cache yet.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), Options{Nodes: 2, Console: console.ForTests("yare")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	kubectl := func(args ...string) (string, error) {
		out, err := exec.Command(p.Binary(), append([]string{"kubectl", "--kubeconfig", p.Kubeconfig()}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	eventually(t, "two nodes", func() bool {
		out, err := kubectl("get", "nodes", "-o", "name")
		return err == nil && strings.Count(out, "node/") == 2
	})
	if err := p.Kill(t.Context(), "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if out, err := kubectl("get", "--raw", "/readyz"); err == nil {
		t.Errorf("a killed API server answers %q", out)
	}
	if err := p.StartComponent(t.Context(), "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server is back", func() bool {
		out, err := kubectl("get", "--raw", "/readyz")
		return err == nil && out == "ok"
	})
	if revision, err := p.Compact(t.Context()); err != nil || revision <= 0 {
		t.Errorf("Compact() = %d, %v", revision, err)
	}
	p.Close()
	if _, err := os.Stat(p.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", p.Dir(), err)
	}
	for name, pid := range p.Pids() {
		if !hasEnded(pid) {
			t.Errorf("%s still runs", name)
		}
	}
}
