package up

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// marker begins the first line of every file that up writes for its user.
const marker = "# written by yare up,"

// kubeconfigFile is the file with which users and programs reach the plane. It exists while
// the plane can be used, and is locked as long as its process lives.
type kubeconfigFile struct {
	path string
	lock *os.File // the file itself, when it was written
}

// checkKubeconfig returns an error if path must not be written to: the file was not written
// by up, or it belongs to a plane that still runs.
func checkKubeconfig(path string) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fmt.Errorf("the folder of the kubeconfig file %s: %w: make it first", path, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the kubeconfig file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the kubeconfig file: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder: give --kubeconfig the name of a file", path)
	}
	first := make([]byte, 256)
	n, _ := file.Read(first)
	line, _, _ := bytes.Cut(first[:n], []byte("\n"))
	if !bytes.HasPrefix(line, []byte(marker)) {
		return fmt.Errorf(
			"%s exists and was not written by yare up, so it is left alone: remove it, or give another --kubeconfig", path)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s belongs to a control plane that still runs (%s): stop it, or give another --kubeconfig",
			path, strings.TrimPrefix(string(line), "# "))
	}
	return nil
}

// writeKubeconfig makes the file appear at once with its whole content.
func writeKubeconfig(path string, content []byte) (*kubeconfigFile, error) {
	if err := checkKubeconfig(path); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // its mode is 0600
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig file: %w", err)
	}
	fail := func(err error) (*kubeconfigFile, error) {
		file.Close()
		os.Remove(file.Name())
		return nil, fmt.Errorf("write the kubeconfig file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fail(err)
	}
	if _, err := fmt.Fprintf(file, "%s pid %d; removed when it stops\n%s", marker, os.Getpid(), content); err != nil {
		return fail(err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fail(err)
	}
	return &kubeconfigFile{path: path, lock: file}, nil
}

// remove removes the file, unless another file has taken its place.
func (k *kubeconfigFile) remove() error {
	defer k.lock.Close()
	there, err := os.Stat(k.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the kubeconfig file: %w", err)
	}
	if ours, err := k.lock.Stat(); err != nil || !os.SameFile(ours, there) {
		return nil
	}
	if err := os.Remove(k.path); err != nil {
		return fmt.Errorf("remove the kubeconfig file: %w", err)
	}
	return nil
}
