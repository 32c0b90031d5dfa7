package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// source is where a program comes from: one of the three fields is set.
type source struct {
	// prebuilt is the path of a binary.
	prebuilt string
	// dir is a folder that holds the source of the nested module.
	dir string
	// version is a version of the nested module.
	version string
	// minor is the minor version of Kubernetes, or empty for that of the go.mod.
	minor string
}

// goMod returns the name of the file with the requirements, in the folder of the source.
func (s source) goMod() string {
	if s.minor == "" {
		return "go.mod"
	}
	return "kubernetes-" + s.minor + ".mod"
}

// sourceFinder finds the source of a module's program.
type sourceFinder struct {
	module Module
	// dir is the folder of the user.
	dir string
	env environment
	// own is where the yare module of this program is. It is nil if the place is not known.
	own *Location
}

// find returns where the program comes from. The first of these that exists counts:
//
//   - the binary that the environment names
//   - the source beside the yare module that the user's module requires, replaces or is
//   - the version of that yare module
//   - the source or the version that belongs to the yare of this program
func (s sourceFinder) find(ctx context.Context) (source, error) {
	if name := s.env.value(s.module.Variable()); name != "" {
		path, err := s.module.checkPrebuilt(name)
		return source{prebuilt: path}, err
	}
	required, ok, err := s.requiredModule(ctx)
	switch {
	case err != nil:
		return source{}, err
	case ok:
		return required.source(s.module)
	default:
		return s.ownSource()
	}
}

// listedModule is the output of `go list -m -json` for the yare module.
type listedModule struct {
	Path    string
	Version string
	Main    bool
	Dir     string
	Replace *struct{ Path, Version string }
	Error   *struct{ Err string }
}

// requiredModule returns the yare module that the go command finds from the user's module. So replace directives and
// workspaces count. It reports false if the folder is in no module, or if the
// module does not require yare.
func (s sourceFinder) requiredModule(ctx context.Context) (m listedModule, ok bool, err error) {
	tool, err := newGoTool(s.env, s.module)
	if err != nil {
		return m, false, err
	}
	gomod, err := tool.output(ctx, s.dir, nil, "env", "GOMOD")
	if err != nil {
		return m, false, fmt.Errorf("ask the go command for the module of %s: %w", s.dir, err)
	}
	if name := strings.TrimSpace(gomod); name == "" || name == os.DevNull {
		return m, false, nil
	}
	// -mod=readonly, because a vendor folder hides where a module comes from.
	out, err := tool.output(ctx, s.dir, nil, "list", "-mod=readonly", "-e", "-m", "-json", ModulePath)
	if err != nil {
		return m, false, fmt.Errorf("ask the go command which version of yare the module of %s requires: %w", s.dir, err)
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		return m, false, fmt.Errorf("read the output of go list about %s: %w", ModulePath, err)
	}
	switch {
	case m.Error == nil:
		return m, true, nil
	case strings.Contains(m.Error.Err, "not a known dependency"):
		return m, false, nil
	default:
		return m, false, fmt.Errorf("find the yare module that %s requires: %s", s.dir, m.Error.Err)
	}
}

// source returns the source of the nested module p that belongs to the yare module m.
func (m listedModule) source(p Module) (source, error) {
	if m.Dir != "" && p.isBeside(m.Dir) {
		return source{dir: filepath.Join(m.Dir, p.Folder)}, nil
	}
	switch {
	case m.Replace != nil && m.Replace.Version == "":
		return source{}, fmt.Errorf("yare is replaced by %s, which has no folder %s: "+
			"replace it with a whole clone of the repository, or set %s to a prebuilt binary",
			m.Replace.Path, p.Folder, p.Variable())
	case m.Replace != nil && m.Replace.Path != ModulePath:
		return source{}, fmt.Errorf("yare is replaced by %s %s, and a module of another name does not bring %s: "+
			"replace it with a folder that holds a clone, or set %s to a prebuilt binary", m.Replace.Path,
			m.Replace.Version, p.Title, p.Variable())
	case m.Replace != nil:
		return source{version: m.Replace.Version}, nil
	case m.Version == "":
		return source{}, fmt.Errorf("%s is a yare module without a folder %s beside its go.mod: "+
			"use a whole clone of the repository, or set %s to a prebuilt binary", m.Dir, p.Folder, p.Variable())
	}
	return source{version: m.Version}, nil
}

// ownSource returns the source that belongs to the yare of this program. It is used where no module names
// another source.
func (s sourceFinder) ownSource() (source, error) {
	switch {
	case s.own == nil:
		return source{}, fmt.Errorf(
			"this program is a development version of yare, and neither is %s in a module that requires %s: "+
				"run it inside such a module or a clone of the repository, install a released version "+
				"(go install %s/cmd/yare@latest), or set %s to a prebuilt binary", s.dir, ModulePath,
			ModulePath, s.module.Variable())
	case s.own.Dir != "":
		return source{dir: filepath.Join(s.own.Dir, s.module.Folder)}, nil
	default:
		return source{version: s.own.Version}, nil
	}
}
