//go:build linux

package images

import (
	"maps"
	"slices"
	"testing"
)

func TestAliases(t *testing.T) {
	t.Parallel()
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, test := range []struct {
		name string
		want []string
	}{
		{"registry.example.com/webapp:v1", []string{"registry.example.com/webapp:v1", "registry.example.com/webapp@" + digest}},
		{"localhost:5000/webapp", []string{"localhost:5000/webapp:latest", "localhost:5000/webapp@" + digest}},
		{"webapp:v1", []string{"docker.io/library/webapp:v1", "docker.io/library/webapp@" + digest}},
		{"team/webapp:v1", []string{"docker.io/team/webapp:v1", "docker.io/team/webapp@" + digest}},
		{"registry.example.com/webapp@" + digest, nil},
	} {
		if got := aliases(test.name, digest); !slices.Equal(got, test.want) {
			t.Errorf("the aliases of %s are %v, want %v", test.name, got, test.want)
		}
	}
}

func TestParseList(t *testing.T) {
	t.Parallel()
	const table = `REF                    TYPE                                                 DIGEST      SIZE     PLATFORMS   LABELS
localhost/yare/pause:1 application/vnd.docker.distribution.manifest.v2+json sha256:1234 1.2 KiB  linux/amd64 -
docker.io/library/e:v1 application/vnd.oci.image.index.v1+json              sha256:5678 10.2 MiB linux/amd64,linux/arm64 -
`
	want := map[string]string{"localhost/yare/pause:1": "sha256:1234", "docker.io/library/e:v1": "sha256:5678"}
	if got := parseList(table); !maps.Equal(got, want) {
		t.Errorf("the images are %v, want %v", got, want)
	}
}
