package certificates

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/testkit/testcert"
)

// mount writes a certificate as the kubelet does: into a new folder, to which a symbolic link is then moved.
func mount(t *testing.T, dir, folder string, c *tls.Certificate) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": testcert.PEM(c.Leaf), "tls.key": testcert.KeyPEM(t, c.PrivateKey)} {
		if err := os.WriteFile(filepath.Join(dir, folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link(t, dir, folder)
}

// link moves the symbolic link to a folder.
func link(t *testing.T, dir, folder string) {
	t.Helper()
	if err := os.Symlink(folder, filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// A mounted certificate is renewed by a moved link. One that cannot be read is an error at the start, and later the
// last one stays in use.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), new(logBuffer)
	certFile, keyFile := filepath.Join(dir, "..data", "tls.crt"), filepath.Join(dir, "..data", "tls.key")
	logger := slog.New(slog.NewTextHandler(log, nil))
	_, err := NewFiles(certFile, keyFile, logger)
	if err == nil || !strings.Contains(err.Error(), certFile) || !strings.Contains(err.Error(), "--webhook-cert") {
		t.Errorf("without files: %v", err)
	}
	s := mustNext(t, State{}, State{}, time.Now())
	first, second := mustServe(t, s, time.Now()), mustServe(t, s, time.Now().Add(10*day))
	mount(t, dir, "1", first)
	files, err := NewFiles(certFile, keyFile, logger)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, want *tls.Certificate) {
		t.Helper()
		got, err := files.GetCertificate(nil)
		if err != nil || !got.Leaf.Equal(want.Leaf) {
			t.Errorf("%s: it is another certificate: %v", what, err)
		}
		if left := files.Status().CertificateLeft; (time.Until(want.Leaf.NotAfter) - left).Abs() > time.Minute {
			t.Errorf("%s: it ends in %s", what, left)
		}
	}
	check("at first", first)
	mount(t, dir, "2", second)
	check("renewed", second)
	if err := os.Mkdir(filepath.Join(dir, "3"), 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, dir, "3")
	check("gone", second)
	if n := strings.Count(log.String(), "cannot be read again"); n != 1 {
		t.Errorf("the log has the problem %d times: %s", n, log)
	}
	link(t, dir, "1")
	check("back", first)

	// A key that belongs to another certificate.
	if err := os.WriteFile(keyFile, []byte("-----BEGIN nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFiles(certFile, keyFile, logger); err == nil || !strings.Contains(err.Error(), keyFile) {
		t.Errorf("with a broken key: %v", err)
	}
}
