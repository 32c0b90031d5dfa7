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

// A Running is a control plane of this user that runs now.
type Running struct {
	Pid        int       `json:"pid"` // of the process that started it
	Title      string    `json:"title"`
	Kubeconfig string    `json:"kubeconfig"`
	Binary     string    `json:"binary"`
	Started    time.Time `json:"started"`
}

// An entry is this process's own file in the list of running planes. It is locked as long
// as this process lives: a process id alone may have been given to another.
type entry struct {
	name string
	file *os.File
}

func register(p *Plane, title string) (*entry, error) {
	dir, err := cacheFolder("running")
	if err != nil {
		return nil, err
	}
	if _, err := listIn(dir); err != nil { // Sweeps what others left.
		return nil, err
	}
	return registerIn(dir, p.process.Pid(), Running{
		Pid:        os.Getpid(),
		Title:      title,
		Kubeconfig: p.Kubeconfig(),
		Binary:     p.Binary(),
		Started:    time.Now().Truncate(time.Second),
	})
}

func registerIn(dir string, id int, r Running) (*entry, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("listing the control plane: %w", err)
	}
	// Complete and locked before it has the name that others look for.
	file, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return nil, fmt.Errorf("listing the control plane: %w", err)
	}
	e := &entry{name: file.Name(), file: file}
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
		return nil, fmt.Errorf("listing the control plane: %w", err)
	}
	return e, nil
}

func (e *entry) remove() {
	if e == nil {
		return
	}
	_ = os.Remove(e.name)
	_ = e.file.Close()
}

// List returns the control planes of this user that run now, the oldest first, and removes
// what dead processes left in the list.
func List() ([]Running, error) {
	dir, err := cacheFolder("running")
	if err != nil {
		return nil, err
	}
	return listIn(dir)
}

func listIn(dir string) ([]Running, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, fmt.Errorf("looking for running control planes: %w", err)
	}
	var running []Running
	for _, name := range names {
		if !filelock.Held(name, filelock.Shared) {
			// A new- file is unlocked for the moment between its making and its locking.
			if info, err := os.Stat(name); err == nil && (filepath.Ext(name) == ".json" || time.Since(info.ModTime()) > time.Minute) {
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
