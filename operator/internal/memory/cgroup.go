package memory

import (
	"path"
	"slices"
	"strings"
)

// memoryGroup locates the limits of a control group and of the groups around it: in the file
// in folder, and in each folder between it and top. The names have no leading slash, as in
// package fs.
type memoryGroup struct {
	top, folder, file string
}

// folders returns the folder of the group and the folders of the groups around it. For example, the group a/b/c below
// the top a has the folders a/b/c, a/b and a.
func (g memoryGroup) folders() []string {
	folders := []string{g.folder}
	for at := g.folder; at != g.top; {
		at = path.Dir(at)
		folders = append(folders, at)
	}
	return folders
}

// memoryGroups returns the groups of this process in version 2 and in version 1 of control
// groups, because a system can have both. The arguments are the contents of /proc/self/cgroup
// and /proc/self/mountinfo: see cgroups(7) and proc_pid_mountinfo(5).
func memoryGroups(memberships, mounts string) []memoryGroup {
	var groups []memoryGroup
	for line := range strings.Lines(memberships) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		controllers, member := parts[1], parts[2]
		var file string
		var mounted func(mount) bool
		switch {
		case parts[0] == "0" && controllers == "":
			file = "memory.max"
			mounted = func(m mount) bool { return m.kind == "cgroup2" }
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			file = "memory.limit_in_bytes"
			mounted = func(m mount) bool {
				return m.kind == "cgroup" && slices.Contains(strings.Split(m.options, ","), "memory")
			}
		default:
			continue
		}
		for line := range strings.Lines(mounts) {
			if m, ok := parseMount(line); ok && mounted(m) {
				top := strings.TrimPrefix(m.point, "/")
				groups = append(groups, memoryGroup{top: top, folder: path.Join(top, pathInMount(m.root, member)), file: file})
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
