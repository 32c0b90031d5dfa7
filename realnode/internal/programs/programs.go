//go:build linux

// Package programs finds the installed programs that a real node is made of.
package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs holds the paths of the installed programs that a node uses.
type Programs struct {
	// Containerd and Ctr are the paths of containerd and of its client.
	Containerd, Ctr string
	// CNI is the folder of the CNI plugins.
	CNI string
}

// advice is the end of each error of this package.
const advice = "or leave --real-node out for a simulated node"

// Path returns the search path for programs: the search path of this process, with the folders of programs
// for administrators, which the search path of a user often lacks.
func Path() string {
	path := os.Getenv("PATH")
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"} {
		if !strings.Contains(":"+path+":", ":"+dir+":") {
			path += ":" + dir
		}
	}
	return strings.TrimPrefix(path, ":")
}

// Find returns the programs. Its error names everything that is missing, and how to install it.
func Find() (Programs, error) {
	if os.Geteuid() != 0 {
		return Programs{}, errors.New("a real node needs root: run yare as root, " + advice)
	}
	if err := os.Setenv("PATH", Path()); err != nil {
		return Programs{}, fmt.Errorf("set PATH: %w", err)
	}
	var missing []string
	find := func(name string) string {
		path, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, name)
		}
		return path
	}
	found := Programs{Containerd: find("containerd"), Ctr: find("ctr")}
	for _, name := range []string{"containerd-shim-runc-v2", "runc", "nft"} {
		find(name)
	}
	dirs := []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}
	plugins := []string{"ptp", "host-local", "loopback"}
	if found.CNI = folderWith(dirs, plugins); found.CNI == "" {
		missing = append(missing, fmt.Sprintf("the CNI plugins %s in one of %s",
			strings.Join(plugins, ", "), strings.Join(dirs, ", ")))
	}
	if len(missing) > 0 {
		return Programs{}, fmt.Errorf("a real node needs programs that are not installed: %s: install them "+
			"(Debian and Ubuntu: apt-get install containerd nftables containernetworking-plugins), %s",
			strings.Join(missing, "; "), advice)
	}
	return found, nil
}

// folderWith returns the first folder that holds all files, or "".
func folderWith(dirs, files []string) string {
	for _, dir := range dirs {
		complete := true
		for _, file := range files {
			info, err := os.Stat(filepath.Join(dir, file))
			complete = complete && err == nil && info.Mode().IsRegular()
		}
		if complete {
			return dir
		}
	}
	return ""
}
