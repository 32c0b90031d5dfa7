package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canSeeProcesses is true if mentioning finds processes.
const canSeeProcesses = true

// alive reports whether a process runs. A process that only waits to be reaped does not run.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the name, which is in parentheses and may hold some itself.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// mentioning returns the command lines of all processes that have a folder's path in their arguments
// or their environment.
func mentioning(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if filepath.Base(entry) == fmt.Sprint(os.Getpid()) {
			continue
		}
		arguments, _ := os.ReadFile(entry + "/cmdline") // it may just have ended
		environ, _ := os.ReadFile(entry + "/environ")
		if bytes.Contains(arguments, []byte(folder)) || bytes.Contains(environ, []byte(folder)) {
			found = append(found, filepath.Base(entry)+" "+string(bytes.ReplaceAll(arguments, []byte{0}, []byte{' '})))
		}
	}
	return found
}
