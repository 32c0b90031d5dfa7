package yaretest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built holds the programs that tests of this process use at the moment, by source folder.
var built = struct {
	sync.Mutex
	programs map[string]*builtProgram
}{programs: make(map[string]*builtProgram)}

// builtProgram is one built main package. Tests that use it at the same time share it.
type builtProgram struct {
	users  int
	once   sync.Once
	dir    string
	path   string
	output []byte
	err    error
}

// Build compiles the main package in a folder, such as ".", and returns the path of the program,
// which is removed after t. Tests that run at the same time share it. An error of the compiler fails t.
func Build(t testing.TB, folder string) string {
	t.Helper()
	source, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	built.Lock()
	p := built.programs[source]
	if p == nil {
		p = new(builtProgram)
		built.programs[source] = p
	}
	p.users++
	built.Unlock()
	t.Cleanup(func() { p.release(source) })
	p.once.Do(func() { p.build(source) })
	if p.err != nil {
		t.Fatalf("build %s: %v\n%s", folder, p.err, p.output)
	}
	return p.path
}

func (p *builtProgram) build(source string) {
	if p.dir, p.err = os.MkdirTemp("", "yaretest-"); p.err != nil {
		return
	}
	p.path = filepath.Join(p.dir, filepath.Base(source))
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", p.path, ".")
	cmd.Dir = source
	p.output, p.err = cmd.CombinedOutput()
}

// release gives up the use of the program. The last user removes it.
func (p *builtProgram) release(source string) {
	built.Lock()
	defer built.Unlock()
	if p.users--; p.users > 0 {
		return
	}
	delete(built.programs, source)
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}
