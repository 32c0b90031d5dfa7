package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/yare-go/yare/internal/plane/process"
)

// shownCommand returns the command that calls this program in another terminal: "yare", or
// "go run ./cmd/yare" if it was called so.
func shownCommand() string {
	if process.ParentIsGo() {
		if command := withoutOurs(process.ParentArgs(), os.Args[1:]); command != "" {
			return command
		}
	}
	executable, err := os.Executable()
	if err != nil {
		return "yare"
	}
	if strings.Contains(executable, string(filepath.Separator)+"go-build") {
		return "go run github.com/yare-go/yare/cmd/yare"
	}
	if found, err := exec.LookPath("yare"); err == nil && isSameFile(found, executable) {
		return "yare"
	}
	return executable
}

// withoutOurs returns the command line of a go command without the arguments of this program, or
// "" if the command line does not end with them.
func withoutOurs(parent, ours []string) string {
	n := len(parent) - len(ours)
	if n < 2 {
		return ""
	}
	for i, arg := range ours {
		if parent[n+i] != arg {
			return ""
		}
	}
	return strings.Join(append([]string{"go"}, parent[1:n]...), " ")
}

func isSameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
