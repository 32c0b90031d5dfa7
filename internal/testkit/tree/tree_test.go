// Package tree_test checks the whole tree of the repository: the limits that docs/architecture.md sets, the exported
// names, the pages and their links, and the pictures. There is no package tree.
package tree_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// enterRoot makes the root of the module the working directory, where the paths of all tests begin. Each test calls it
// first. TestMain cannot do it: go test keeps the results of tests with the files that they open, and would look for
// these files below this folder, because it records a change of the directory only during a test.
var enterRoot = sync.OnceFunc(func() {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
})

// filesOfGit returns the names of the files that git has or would add, and that match a pattern. The pattern "*.go"
// matches in all folders.
func filesOfGit(t *testing.T, pattern string) (names []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", pattern)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		if _, err := os.Stat(name); err == nil { // git lists a deleted file until git add records the deletion
			names = append(names, name)
		}
	}
	return names
}
