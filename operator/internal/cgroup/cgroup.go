// Package cgroup finds the limits of the control groups of this process: see cgroups(7).
package cgroup

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// LowestLimit returns the lowest limit of the control groups of this process. The groups are that of
// the process and the groups around it, as far as a container shows them. root is the root of the file system.
//
// controller is the name of the limited resource in version 1, such as memory. read returns the limit in the folder of a
// group, and false if there is none. A system can have groups of both versions. A file that cannot be read sets no
// limit.
func LowestLimit(
	root fs.FS, controller string, read func(folder string, isVersion1 bool) (int64, bool),
) (limit int64, ok bool) {
	memberships, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0, false
	}
	for _, g := range groupsOf(string(memberships), string(mounts), controller) {
		for _, folder := range g.folders() {
			if found, hasLimit := read(folder, g.isVersion1); hasLimit && (!ok || found < limit) {
				limit, ok = found, true
			}
		}
	}
	return limit, ok
}

// group locates a control group and the groups around it: in folder, and in each folder between it and top. The names
// have no leading slash, as in package fs.
type group struct {
	top, folder string
	isVersion1  bool
}

// folders returns the folder of the group and the folders of the groups around it. For example, the group a/b/c below
// the top a has the folders a/b/c, a/b and a.
func (g group) folders() []string {
	folders := []string{g.folder}
	for at := g.folder; at != g.top; {
		at = path.Dir(at)
		folders = append(folders, at)
	}
	return folders
}

// groupsOf returns the groups of this process in version 2 and in version 1 of control groups. memberships and mounts
// are the contents of /proc/self/cgroup and /proc/self/mountinfo: see proc_pid_mountinfo(5).
func groupsOf(memberships, mounts, controller string) []group {
	var groups []group
	for line := range strings.Lines(memberships) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		controllers, member := parts[1], parts[2]
		isVersion2 := parts[0] == "0" && controllers == ""
		if !isVersion2 && !slices.Contains(strings.Split(controllers, ","), controller) {
			continue
		}
		for line := range strings.Lines(mounts) {
			m, ok := parseMount(line)
			switch {
			case !ok:
			case isVersion2 && m.kind == "cgroup2",
				!isVersion2 && m.kind == "cgroup" && slices.Contains(strings.Split(m.options, ","), controller):
				top := strings.TrimPrefix(m.point, "/")
				groups = append(groups,
					group{top: top, folder: path.Join(top, pathInMount(m.root, member)), isVersion1: !isVersion2})
			}
		}
	}
	return groups
}

// pathInMount returns the path from the root of a mount to a group. For example, the path from /docker to /docker/x is
// /x. In a container the group can be the root itself, or can be outside of the mount. The path is empty then.
func pathInMount(root, member string) string {
	if strings.Contains(member+"/", "/../") {
		return ""
	}
	if root == "/" {
		return member
	}
	if rest, ok := strings.CutPrefix(member, root); ok && (rest == "" || rest[0] == '/') {
		return rest
	}
	return ""
}

// mount is one line of mountinfo, with the fields that matter here.
type mount struct {
	root, point, kind, options string
}

// parseMount returns the mount of a line.
func parseMount(line string) (mount, bool) {
	// 42 32 0:28 /root /point rw,nosuid shared:1 - kind source options
	before, after, ok := strings.Cut(line, " - ")
	if !ok {
		return mount{}, false
	}
	first, last := strings.Fields(before), strings.Fields(after)
	if len(first) < 5 || len(last) < 3 {
		return mount{}, false
	}
	// White space is written as octal numbers.
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	return mount{root: plain.Replace(first[3]), point: plain.Replace(first[4]), kind: last[0], options: last[2]}, true
}
