package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// ModulePath is the path of the Go module yare.
const ModulePath = "github.com/yare-go/yare"

// A source is where a program comes from: one of the three fields is set.
type source struct {
	prebuilt string // a binary
	dir      string // a folder that holds the source of the nested module
	version  string // a version of the nested module
}

// locate returns where the program comes from: the binary that the environment names, or the
// source beside the yare module that the user's module requires, replaces or is, or the published
// version that belongs to that module.
func (f Finder) locate(ctx context.Context) (source, error) {
	if name := f.getenv(f.program().Variable()); name != "" {
		path, err := f.program().checkPrebuilt(name)
		return source{prebuilt: path}, err
	}
	required, err := f.requiredModule(ctx)
	if err != nil {
		return source{}, err
	}
	if required != nil {
		return required.source(f.program())
	}
	return f.ownSource()
}

// checkPrebuilt returns the absolute path of the binary of p that the environment names.
func (p Program) checkPrebuilt(name string) (string, error) {
	variable := p.Variable()
	advice := "name a binary of " + p.Title + ", or unset " + variable + " to have one built"
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("%s=%s: %w", variable, name, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s=%s: there is no such file: %s", variable, name, advice)
	case err != nil:
		return "", fmt.Errorf("%s=%s: %w: %s", variable, name, err, advice)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return "", fmt.Errorf("%s=%s: this is not an executable file: %s", variable, name, advice)
	}
	return path, nil
}

// A listedModule is the output of `go list -m -json` for the yare module.
type listedModule struct {
	Path    string
	Version string
	Main    bool
	Dir     string
	Replace *struct{ Path, Version string }
	Error   *struct{ Err string }
}

// requiredModule returns the yare module that the user's module means. It asks the go command, so
// that replace directives and workspaces count. It returns nil when there is no module, or the
// module does not require yare.
func (f Finder) requiredModule(ctx context.Context) (*listedModule, error) {
	tool, err := f.goTool()
	if err != nil {
		return nil, err
	}
	gomod, err := tool.output(ctx, f.Dir, nil, "env", "GOMOD")
	if err != nil {
		return nil, fmt.Errorf("asking the go command for the module of %s: %w", f.Dir, err)
	}
	if name := strings.TrimSpace(gomod); name == "" || name == os.DevNull {
		return nil, nil
	}
	// -mod=readonly, because a vendor folder hides where a module comes from.
	out, err := tool.output(ctx, f.Dir, nil, "list", "-mod=readonly", "-e", "-m", "-json", ModulePath)
	if err != nil {
		return nil, fmt.Errorf("asking the go command which version of yare the module of %s requires: %w", f.Dir, err)
	}
	var m listedModule
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		return nil, fmt.Errorf("reading what go list says of %s: %w", ModulePath, err)
	}
	if m.Error != nil {
		if strings.Contains(m.Error.Err, "not a known dependency") {
			return nil, nil
		}
		return nil, fmt.Errorf("finding the yare module that %s requires: %s", f.Dir, m.Error.Err)
	}
	return &m, nil
}

// source returns the source of p that belongs to the module m.
func (m *listedModule) source(p Program) (source, error) {
	if m.Dir != "" && p.isBeside(m.Dir) {
		return source{dir: filepath.Join(m.Dir, p.Folder)}, nil
	}
	switch {
	case m.Replace != nil && m.Replace.Version == "":
		return source{}, fmt.Errorf("yare is replaced by %s, which has no folder %s: "+
			"replace it with a whole clone of the repository, or set %s to a prebuilt binary", m.Replace.Path, p.Folder, p.Variable())
	case m.Replace != nil && m.Replace.Path != ModulePath:
		return source{}, fmt.Errorf("yare is replaced by %s %s, and a module of another name does not bring %s: "+
			"replace it with a folder that holds a clone, or set %s to a prebuilt binary", m.Replace.Path, m.Replace.Version, p.Title, p.Variable())
	case m.Replace != nil:
		return source{version: m.Replace.Version}, nil
	case m.Version == "":
		return source{}, fmt.Errorf("%s is a yare module without a folder %s beside its go.mod: "+
			"use a whole clone of the repository, or set %s to a prebuilt binary", m.Dir, p.Folder, p.Variable())
	}
	return source{version: m.Version}, nil
}

// ownSource returns the source of the program that belongs to this very yare. It is used where no
// module names another source.
func (f Finder) ownSource() (source, error) {
	version, clone := f.ownVersion(), ""
	if !f.noClone {
		clone = cloneOfThisYare(f.program())
	}
	switch m, ok := ownModule(version, clone); {
	case !ok:
		return source{}, fmt.Errorf("this program is a development version of yare, and neither is %s in a module that requires %s: "+
			"run it inside such a module or a clone of the repository, install a released version "+
			"(go install %s/cmd/yare@latest), or set %s to a prebuilt binary", f.Dir, ModulePath, ModulePath, f.program().Variable())
	case m.Dir != "":
		return source{dir: filepath.Join(m.Dir, f.program().Folder)}, nil
	default:
		return source{version: m.Version}, nil
	}
}

// Module is where the yare module of a program is: one of the two fields is set.
type Module struct {
	// Version is a published version.
	Version string
	// Dir is a clone on this machine.
	Dir string
}

// OwnModule returns where the yare module of this program is.
func OwnModule() (Module, error) {
	m, ok := ownModule(OwnVersion(), cloneOfThisYare(ControlPlane()))
	if !ok {
		return Module{}, fmt.Errorf("this yare is a development version, and the clone that it was built from is not there: "+
			"run it from a clone of the repository (go run ./cmd/yare), or install a released version (go install %s/cmd/yare@latest)", ModulePath)
	}
	return m, nil
}

// ownModule returns where the yare module of a program of that version is, which was built from
// that clone. It reports whether the place is known.
func ownModule(version, clone string) (m Module, ok bool) {
	isDirty := strings.HasSuffix(version, "+dirty")
	switch isReleased := version != "" && !isDirty && !module.IsPseudoVersion(version); {
	// A development version was built from a clone on this machine, which may still be there.
	// (-trimpath leaves no absolute path behind.)
	case !isReleased && clone != "":
		return Module{Dir: clone}, true
	case version == "" || isDirty:
		return Module{}, false
	default:
		return Module{Version: version}, true
	}
}

// isBeside reports whether the module of p is in its folder below the root of a yare module.
func (p Program) isBeside(root string) bool {
	data, err := os.ReadFile(filepath.Join(root, p.Folder, "go.mod"))
	return err == nil && modfile.ModulePath(data) == p.modulePath()
}

// cloneOfThisYare returns the clone that this program was built from, or "" if it is not there or
// does not hold p.
func cloneOfThisYare(p Program) string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if !p.isBeside(root) {
		return ""
	}
	return root
}

// OwnVersion returns the version of the yare module in this program, or "" if it was built from a
// folder.
func OwnVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, m := range modules {
		if m.Path != ModulePath {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version == "(devel)" {
			return ""
		}
		return m.Version
	}
	return ""
}

// A goTool is the user's go command.
type goTool struct {
	path string
	env  []string
}

func (f Finder) goTool() (goTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return goTool{}, fmt.Errorf("the go command was not found in PATH; it builds %s on first use: "+
			"install Go (https://go.dev/dl), or set %s to a prebuilt binary", f.program().Title, f.program().Variable())
	}
	return goTool{path: path, env: f.environ()}, nil
}
