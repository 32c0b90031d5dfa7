package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// serve serves a registry that accepts one user.
func serve(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "robot" || password != "s3cret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="lights"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you?"}]}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	return s
}

// login returns the environment of somebody who has logged in at a registry.
func login(t *testing.T, host string) []string {
	t.Helper()
	dir := t.TempDir()
	const robot = "cm9ib3Q6czNjcmV0" // robot:s3cret
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, robot)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"DOCKER_CONFIG=" + dir}
}

func TestPush(t *testing.T) {
	t.Parallel()
	s := serve(t, (*httptest.Server).Start)
	host := strings.TrimPrefix(s.URL, "http://")
	dir := beacon(t)
	want, _ := makeFile(t, nil, dir)
	stdout, all, err := call(t, login(t, host), "--push="+host+"/lights/beacon:v1", dir)
	parts := printed.FindStringSubmatch(stdout)
	if err != nil || parts == nil || parts[1] != host+"/lights/beacon" || parts[2] != want {
		t.Fatalf("%v, want the digest %s\n%s", err, want, all)
	}
	for _, text := range []string{parts[1] + "@" + parts[2], host + "/lights/beacon:v1"} {
		reference, err := name.ParseReference(text)
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Index(reference, remote.WithContext(t.Context()), remote.WithAuth(robot{}))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range manifest.Manifests {
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if d.Platform.OS == "linux" {
				err = validate.Image(image)
			} else { // whose only layer is none for the validator
				err = checkStatement(image, reference.Context())
			}
			if err != nil {
				t.Errorf("%s for %s: %v", text, d.Platform, err)
			}
		}
		if digest, err := index.Digest(); err != nil || digest.String() != want {
			t.Errorf("%s has the digest %s, %v", text, digest, err)
		}
	}
	stdout, all, err = call(t, []string{"DOCKER_CONFIG=" + t.TempDir()}, "--push="+host+"/lights/beacon:v1", dir)
	if err == nil || stdout != "" || !strings.Contains(all, "docker login "+host) {
		t.Errorf("without credentials: %v\n%s", err, all)
	}
}

// checkStatement returns an error if a repository does not hold the statement of an attestation.
func checkStatement(attestation v1.Image, repository name.Repository) error {
	manifest, err := attestation.Manifest()
	if err != nil {
		return err
	}
	layer, err := remote.Layer(repository.Digest(manifest.Layers[0].Digest.String()), remote.WithAuth(robot{}))
	if err != nil {
		return err
	}
	r, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer r.Close()
	return json.NewDecoder(r).Decode(new(statement))
}

func TestPushOverTLS(t *testing.T) {
	t.Parallel()
	s := serve(t, (*httptest.Server).StartTLS)
	host := strings.TrimPrefix(s.URL, "https://")
	dir, env := beacon(t), login(t, host)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flag    string
		isValid bool
	}{{"--insecure=false", false}, {"--ca=" + ca, true}, {"--insecure", true}} {
		stdout, all, err := call(t, env, "--push="+host+"/beacon", test.flag, "--platform=linux/amd64", dir)
		if (err == nil) != test.isValid || test.isValid != printed.MatchString(stdout) {
			t.Errorf("%s: %v\n%s", test.flag, err, all)
		}
	}
}

// robot is the user of the registry.
type robot struct{}

func (robot) Authorization() (*authn.AuthConfig, error) {
	return &authn.AuthConfig{Username: "robot", Password: "s3cret"}, nil
}
