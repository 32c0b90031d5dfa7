//go:build linux

package programs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFolderWithAllPlugins(t *testing.T) {
	t.Parallel()
	half, whole := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(half, "ptp"), filepath.Join(whole, "ptp"), filepath.Join(whole, "host-local")} {
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dirs, files := []string{"/no/such/folder", half, whole}, []string{"ptp", "host-local"}
	if got := folderWith(dirs, files); got != whole {
		t.Errorf("the folder is %q, want %q", got, whole)
	}
	if got := folderWith(dirs[:2], files); got != "" {
		t.Errorf("the folder is %q, and no folder holds all plugins", got)
	}
}
