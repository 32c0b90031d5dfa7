package yaretest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// built holds the programs that tests of this process use at the moment, by source folder and flags.
var built = struct {
	sync.Mutex
	programs map[string]*program
}{programs: make(map[string]*program)}

// program is one built main package. Tests that use it at the same time share it.
type program struct {
	users int
	once  sync.Once
	dir   string
	path  string
	said  []byte
	err   error
}

// Build compiles the main package in a folder, such as ".", and returns the path of the program,
// which is removed after t. Tests that run at the same time share it. An error of the compiler fails t.
func Build(t testing.TB, folder string) string {
	t.Helper()
	return build(t, folder)
}

// build does what Build does, with flags for go build.
func build(t testing.TB, folder string, flags ...string) string {
	t.Helper()
	source, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.Join(append(flags, source), " ")
	built.Lock()
	p := built.programs[key]
	if p == nil {
		p = new(program)
		built.programs[key] = p
	}
	p.users++
	built.Unlock()
	t.Cleanup(func() { p.release(key) })
	p.once.Do(func() { p.build(source, flags) })
	if p.err != nil {
		t.Fatalf("build %s: %v\n%s", folder, p.err, p.said)
	}
	return p.path
}

func (p *program) build(source string, flags []string) {
	if p.dir, p.err = os.MkdirTemp("", "yaretest-"); p.err != nil {
		return
	}
	p.path = filepath.Join(p.dir, filepath.Base(source))
	cmd := exec.Command("go", slices.Concat([]string{"build", "-buildvcs=false", "-o", p.path}, flags, []string{"."})...)
	cmd.Dir = source
	p.said, p.err = cmd.CombinedOutput()
}

// release gives up the use of the program. The last user removes it.
func (p *program) release(key string) {
	built.Lock()
	defer built.Unlock()
	if p.users--; p.users > 0 {
		return
	}
	delete(built.programs, key)
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}
