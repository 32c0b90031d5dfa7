package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/testkit/executable"
)

// The environment of a program has nothing of the user's environment but PATH and what was named. A token of the user, or a
// proxy of one machine, reached each program before.
func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "secret")
	t.Setenv("DATABASE_HOST", "db")
	folder := t.TempDir()
	b := Binary{Env: []string{"DATABASE_HOST", "DATABASE_NAME=of-{namespace}", "NOT_SET"}, CoverFolder: "/cover"}
	settings := processSettings{folder: folder, kubeconfig: filepath.Join(folder, "kubeconfig"), namespace: "explore-1"}
	fill, err := b.filler(settings)
	if err != nil {
		t.Fatal(err)
	}
	got := b.environment(settings, fill)
	want := []string{
		"DATABASE_HOST=db", "DATABASE_NAME=of-explore-1", "GOCOVERDIR=/cover", "HOME=" + folder, "KUBECONFIG=" + settings.kubeconfig,
		"PATH=" + os.Getenv("PATH"), "POD_NAMESPACE=explore-1", "TMPDIR=" + folder, "YARE_ACTIVITY_FILE=" + settings.kubeconfig + ".activity", "YARE_CHECK_PERMISSIONS=1",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
}

// A program that fails at its first command printed nothing to the user of the exploration.
func TestOutputOfAProgramThatFailsIsShown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "operator")
	executable.Write(t, path, "#!/bin/sh\necho the flag --bucket is missing >&2\nexit 3\n")
	if _, err := (Binary{Path: path}).CRDs(t.Context()); err == nil || !strings.Contains(err.Error(), "the flag --bucket is missing") {
		t.Errorf("the error is %v", err)
	}
}
