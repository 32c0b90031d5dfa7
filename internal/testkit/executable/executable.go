// Package executable writes programs for tests.
package executable

import (
	"os"
	"syscall"
	"testing"
)

// Write writes a file that can be executed. The process starts no program in the meantime: the child
// would inherit the open file for a moment, and Linux executes no file that is open for writing ("text file busy").
func Write(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}
