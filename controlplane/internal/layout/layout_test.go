package layout

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlane(t *testing.T) {
	folder, err := NewFolder("")
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Remove()
	p, err := New(folder, Config{Executable: "/bin/true", Nodes: 3, APIServerArgs: []string{"--watch-cache=false"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range p.Specs() {
		names = append(names, m.Name)
		if m.Process.Args[0] != m.Name {
			t.Errorf("%s is started as %s", m.Name, m.Process.Args[0])
		}
		for _, arg := range m.Process.Args {
			// Each file that an argument of a component names exists.
			if _, path, found := strings.Cut(arg, "="); found && strings.HasPrefix(path, folder.Path) && strings.Contains(arg, "-file") {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v", arg, err)
				}
			}
		}
		if m.Name == APIServer && !slices.Contains(m.Process.Args, "--watch-cache=false") {
			t.Error("the extra argument is missing")
		}
	}
	if !slices.Equal(names, Components()) {
		t.Errorf("components are %v, want %v", names, Components())
	}
	if kubeconfig := string(p.Kubeconfig()); !strings.Contains(kubeconfig, "server: "+p.Server()+"\n") {
		t.Errorf("the kubeconfig does not name %s", p.Server())
	}
}

func TestServerCertificate(t *testing.T) {
	folder, err := NewFolder("")
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Remove()
	admin, err := writeCredentials(folder, "https://127.0.0.1:1", serviceAddress(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(folder.Join(serverCertFile), folder.Join(serverKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(admin.ca)
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	client, err := tls.X509KeyPair(admin.pair.Certificate, admin.pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(client.Leaf.Subject.Organization, masters) {
		t.Errorf("the administrator is in %v", client.Leaf.Subject.Organization)
	}
}
