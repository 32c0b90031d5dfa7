//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/yare-go/yare/realnode/internal/layout"
)

// tunables returns the settings of the kernel that a kubelet changes for the whole machine. Each has the
// value of the kubelet. The node sees files with these values in place of the settings, so the kubelet
// changes no setting.
func tunables() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":     "1",
		"vm/panic_on_oom":          "0",
		"kernel/panic":             "10",
		"kernel/panic_on_oops":     "1",
		"kernel/keys/root_maxkeys": "1000000",
		// Kubernetes allows 25 bytes for each key.
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// isolateMounts gives this mount namespace folders of its own in place of the folders that containerd,
// runc, the CNI plugins and the kubelet write to.
func isolateMounts(l layout.Layout) error {
	// No mount of the node may reach the machine. Within the node, mounts are shared, because Pods
	// can ask for the propagation of mounts.
	for _, flag := range []uintptr{syscall.MS_PRIVATE, syscall.MS_SHARED} {
		if err := syscall.Mount("", "/", "", flag|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("separate the mounts of the node: %w", err)
		}
	}
	const noPrograms = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	if err := syscall.Mount("proc", "/proc", "proc", noPrograms, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := hideTunables(l); err != nil {
		return err
	}
	for target, folder := range map[string]string{"/var/lib": "lib", "/var/log": "log"} {
		if err := os.MkdirAll(l.Path(folder), 0o755); err != nil {
			return fmt.Errorf("make a folder of the node: %w", err)
		}
		if err := bind(l.Path(folder), target); err != nil {
			return err
		}
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	// On most systems /var/run is a symbolic link to /run.
	if info, err := os.Lstat("/var/run"); err == nil && info.IsDir() {
		return bind("/run", "/var/run")
	}
	return nil
}

// hideTunables puts files with the wanted values in the place of kernel settings.
func hideTunables(l layout.Layout) error {
	for name, value := range tunables() {
		setting := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(setting); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := l.Path("tunables", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make a folder of the node: %w", err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("write a setting of the node: %w", err)
		}
		if err := bind(file, setting); err != nil {
			return err
		}
	}
	return nil
}

func bind(source, target string) error {
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}
