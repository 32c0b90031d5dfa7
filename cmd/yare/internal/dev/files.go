package dev

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lookPeriod is the time between two looks at the files. A program has a few dozen files. Polling needs less code than
// notifications, and works with every file system and every editor.
const lookPeriod = 300 * time.Millisecond

// stamp identifies the state of a file.
type stamp struct {
	modified time.Time
	size     int64
}

// files watches the source files of a target. One goroutine uses it.
type files struct {
	target target
	// folders holds the folders in which each Go file counts, also a new file. paths holds the paths of other files that
	// count.
	folders, paths map[string]bool
	// seen holds the states of the files at the last look.
	seen map[string]stamp
	// changing holds the files whose change may not be complete yet.
	changing map[string]bool
}

// newFiles returns the files of a target. They have no change yet.
func newFiles(t target) *files {
	f := &files{target: t, seen: map[string]stamp{}}
	f.folders, f.paths = t.watchedFiles()
	return f
}

// refresh asks the go command which folders the program consists of. New files in them are not
// changes. If the go command fails (a go.mod half written), the folders stay as they were.
func (f *files) refresh(ctx context.Context) {
	packages, err := f.target.packages(ctx)
	if err == nil && len(packages) > 0 {
		f.folders, f.paths = f.target.watchedFiles()
		for _, pkg := range packages {
			f.folders[pkg.Dir] = true
			for _, name := range pkg.EmbedFiles {
				f.paths[filepath.Join(pkg.Dir, name)] = true
			}
			if pkg.Module.GoMod != "" {
				f.paths[pkg.Module.GoMod] = true
				f.paths[filepath.Join(filepath.Dir(pkg.Module.GoMod), "go.sum")] = true
			}
		}
	}
	// The files of folders that the program has left are no changes.
	maps.DeleteFunc(f.seen, func(name string, _ stamp) bool { return !f.folders[filepath.Dir(name)] && !f.paths[name] })
	// Only new files become known here: a file that was saved since the last look is still a
	// change.
	for name, now := range f.look() {
		if _, known := f.seen[name]; !known {
			f.seen[name] = now
		}
	}
}

// look returns the present state of the files.
func (f *files) look() map[string]stamp {
	found := map[string]stamp{}
	add := func(name string) {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			found[name] = stamp{info.ModTime(), info.Size()}
		}
	}
	for dir := range f.folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			name := entry.Name()
			if filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, ".") &&
				!strings.HasPrefix(name, "_") {
				add(filepath.Join(dir, name))
			}
		}
	}
	for name := range f.paths {
		add(name)
	}
	return found
}

// takeChanges returns the files that were saved, made or removed, each change once. It returns no files while a file
// has changed since the last look, because an editor may write a file in several steps, and a checkout writes many
// files.
//
// An example of three looks. An editor writes half of main.go before the first look, and the rest before the second
// one:
//
//	look 1  main.go has changed: nothing is returned
//	look 2  main.go has changed again: nothing is returned
//	look 3  nothing has changed: main.go is returned
func (f *files) takeChanges() []string {
	found := f.look()
	changed := map[string]bool{}
	for name, now := range found {
		if before, ok := f.seen[name]; !ok || !before.modified.Equal(now.modified) || before.size != now.size {
			changed[name] = true
		}
	}
	for name := range f.seen {
		if _, ok := found[name]; !ok {
			changed[name] = true
		}
	}
	f.seen = found
	if len(changed) > 0 {
		if f.changing == nil {
			f.changing = map[string]bool{}
		}
		for name := range changed {
			f.changing[name] = true
		}
		return nil
	}
	var names []string
	for name := range f.changing {
		names = append(names, name)
	}
	f.changing = nil
	slices.Sort(names)
	return names
}

// waitForChanges waits for the next changes, and takes them.
func (f *files) waitForChanges(ctx context.Context) ([]string, error) {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticker.C:
			if names := f.takeChanges(); len(names) > 0 {
				return names, nil
			}
		}
	}
}
