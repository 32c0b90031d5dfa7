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
		if command := withoutOwnArgs(process.ParentArgs(), os.Args[1:]); command != "" {
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

// withoutOwnArgs returns the command line of a go command without the arguments of this program, or
// "" if the command line does not end with these arguments. For example, for
// "go run ./cmd/yare dev ." and the own arguments "dev" and "." it returns "go run ./cmd/yare".
func withoutOwnArgs(parent, own []string) string {
	n := len(parent) - len(own)
	if n < 2 {
		return ""
	}
	for i, arg := range own {
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
