package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file with a schedule without steps once ended the command with a panic.
func TestReplayOfAScheduleWithoutSteps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "finding.json")
	if err := os.WriteFile(path, []byte(`{"coverage":{},"findings":[{"schedule":{"steps":[]}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReplayFile(t.Context(), &fakeLauncher{}, Settings{}, path, 1)
	if err == nil || !strings.Contains(err.Error(), "finding 1 has no steps") {
		t.Errorf("the error is %v", err)
	}
}
