package plane

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/plane/filelock"
)

// Running is a control plane of this user that runs now.
type Running struct {
	// Pid is the ID of the process that has started the control plane.
	Pid        int       `json:"pid"`
	Title      string    `json:"title"`
	Kubeconfig string    `json:"kubeconfig"`
	Binary     string    `json:"binary"`
	Started    time.Time `json:"started"`
	// Projects are the projects that the control plane belongs to (see [Project]): the project of the
	// folder it was started in and, if that is another one, the project of its operator.
	Projects []string `json:"projects"`
	// Node is the real node of the control plane. It is nil if the nodes are simulated.
	Node *RunningNode `json:"node,omitempty"`
}

// RunningNode is a real node that runs now.
type RunningNode struct {
	// Binary is the path of the program that runs the node.
	Binary string `json:"binary"`
	// Socket is the path of the socket of the node's containerd.
	Socket string `json:"socket"`
}

// Project returns the project that a folder belongs to: the root of its Go module, or the
// folder itself if it is in no module. The path is absolute and without symbolic links.
func Project(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the project of the folder %s: %w", dir, err)
	}
	for root := path; ; root = filepath.Dir(root) {
		if info, err := os.Stat(filepath.Join(root, "go.mod")); err == nil && info.Mode().IsRegular() {
			return root, nil
		}
		if root == filepath.Dir(root) {
			return path, nil
		}
	}
}

// projects returns the projects of the folders, each once.
func projects(dirs ...string) ([]string, error) {
	var all []string
	for _, dir := range dirs {
		project, err := Project(dir)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, project) {
			all = append(all, project)
		}
	}
	return all, nil
}

// listEntry is this process's own file in the list of running planes. The file is locked until this process ends. A
// process ID in the file would not be enough, because the system may give the ID to another process.
type listEntry struct {
	name string
	file *os.File
}

// register adds r to the list of running planes. The ID of the process of the plane names its entry.
func register(id int, r Running) (*listEntry, error) {
	dir, err := cacheFolder("running")
	if err != nil {
		return nil, err
	}
	if _, err := listIn(dir); err != nil { // removes the entries of dead processes
		return nil, err
	}
	return registerIn(dir, id, r)
}

// registerIn adds r to the list in dir.
func registerIn(dir string, id int, r Running) (*listEntry, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("list the control plane: %w", err)
	}
	// The file is complete and locked before it gets the name that others look for.
	file, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return nil, fmt.Errorf("list the control plane: %w", err)
	}
	e := &listEntry{name: file.Name(), file: file}
	err = filelock.Try(file, filelock.Exclusive)
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		name := filepath.Join(dir, fmt.Sprintf("%d.json", id))
		if err = os.Rename(e.name, name); err == nil {
			e.name = name
		}
	}
	if err != nil {
		e.remove()
		return nil, fmt.Errorf("list the control plane: %w", err)
	}
	return e, nil
}

// remove removes the entry from the list. e may be nil.
func (e *listEntry) remove() {
	if e == nil {
		return
	}
	_ = os.Remove(e.name)
	_ = e.file.Close()
}

// List returns the control planes of this user that run now, the oldest first. It removes the
// entries of dead processes from the list.
func List() ([]Running, error) {
	dir, err := cacheFolder("running")
	if err != nil {
		return nil, err
	}
	return listIn(dir)
}

// listIn returns the planes of the list in dir: see [List].
func listIn(dir string) ([]Running, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, fmt.Errorf("look for running control planes: %w", err)
	}
	var running []Running
	for _, name := range names {
		if !filelock.IsHeld(name, filelock.Shared) {
			// A new- file is unlocked for the moment between its making and its locking.
			info, err := os.Stat(name)
			if err == nil && (filepath.Ext(name) == ".json" || time.Since(info.ModTime()) > time.Minute) {
				_ = os.Remove(name)
			}
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil || filepath.Ext(name) != ".json" {
			continue
		}
		var r Running
		if err := json.Unmarshal(data, &r); err == nil {
			running = append(running, r)
		}
	}
	slices.SortFunc(running, func(a, b Running) int { return a.Started.Compare(b.Started) })
	return running, nil
}
