package memory

import (
	"io"
	"log/slog"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestMemoryLimitOfControlGroups(t *testing.T) {
	t.Parallel()
	const (
		mib     = 1 << 20
		v2      = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1      = "31 30 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
		cpu     = "32 30 0:28 / /sys/fs/cgroup/cpu rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
		elsehow = "33 23 0:5 / /proc rw - proc proc rw\n"
	)
	for name, test := range map[string]struct {
		membership, mounts string
		files              map[string]string
		want               int64 // 0: none
	}{
		"version 2, in a container": {
			"0::/\n", elsehow + v2, map[string]string{"sys/fs/cgroup/memory.max": "268435456\n"}, 256 * mib,
		},
		"version 2, no limit": {
			"0::/\n", v2, map[string]string{"sys/fs/cgroup/memory.max": "max\n"}, 0,
		},
		"version 2, the root has no such file": {"0::/\n", v2, nil, 0},
		"version 2, nested, the outer limit is lower": {
			"0::/kubepods/pod1/container\n", v2, map[string]string{
				"sys/fs/cgroup/kubepods/memory.max":                "max\n",
				"sys/fs/cgroup/kubepods/pod1/memory.max":           "104857600\n",
				"sys/fs/cgroup/kubepods/pod1/container/memory.max": "209715200\n",
			}, 100 * mib,
		},
		"version 2, nested, the inner limit is lower": {
			"0::/a/b\n", v2, map[string]string{
				"sys/fs/cgroup/a/memory.max":   "209715200",
				"sys/fs/cgroup/a/b/memory.max": "104857600",
			}, 100 * mib,
		},
		"version 2, nested, only the outermost says something": {
			"0::/a/b\n", v2, map[string]string{
				"sys/fs/cgroup/a/memory.max":   "104857600",
				"sys/fs/cgroup/a/b/memory.max": "max",
			}, 100 * mib,
		},
		"version 2, the host's names, mounted at the group": {
			"0::/kubepods/pod1/c\n",
			"30 23 0:26 /kubepods/pod1/c /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			map[string]string{"sys/fs/cgroup/memory.max": "104857600"}, 100 * mib,
		},
		"version 2, a group that the mount does not show": {
			"0::/../other\n", v2, map[string]string{"sys/fs/cgroup/memory.max": "104857600"}, 100 * mib,
		},
		"version 2, mounted at another group whose name begins alike": {
			"0::/pod10/c\n", "30 23 0:26 /pod1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			map[string]string{"sys/fs/cgroup/memory.max": "104857600", "sys/fs/cgroup/0/c/memory.max": "1048576"}, 100 * mib,
		},
		"version 1": {
			"12:cpu,cpuacct:/x\n11:memory:/docker/abc\n", cpu + v1,
			map[string]string{"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "104857600\n"}, 100 * mib,
		},
		"version 1, no limit": {
			"11:memory:/docker/abc\n", v1,
			map[string]string{"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "9223372036854771712\n"}, 0,
		},
		"version 1, nested": {
			"11:memory:/a/b\n", v1, map[string]string{
				"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "104857600",
				"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712",
			}, 100 * mib,
		},
		"both versions, of which one has the memory": {
			"11:memory:/a\n0::/a\n", "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" + v1,
			map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "104857600"}, 100 * mib,
		},
		"a blank in a name": {
			"0::/\n", `30 23 0:26 / /sys/fs/my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			map[string]string{"sys/fs/my groups/memory.max": "104857600"}, 100 * mib,
		},
		"what makes no sense": {
			"what\n::\n", "is this\n - \n1 2 - a b\n", map[string]string{"sys/fs/cgroup/memory.max": "104857600"}, 0,
		},
		"a limit that is no number": {"0::/\n", v2, map[string]string{"sys/fs/cgroup/memory.max": "lots"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{
				"proc/self/cgroup":    {Data: []byte(test.membership)},
				"proc/self/mountinfo": {Data: []byte(test.mounts)},
			}
			for name, text := range test.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got, ok := memoryLimit(root); got != test.want || ok != (test.want > 0) {
				t.Errorf("the limit is %d (%t), not %d", got, ok, test.want)
			}
		})
	}
	if _, ok := memoryLimit(fstest.MapFS{}); ok {
		t.Error("there is a limit where there are no control groups")
	}
}

// Not parallel: the environment and the limit are the process's.
func TestMemoryLimitOfTheEnvironmentWins(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	t.Setenv("GOMEMLIMIT", "1GiB")
	Limit(log)()
	if now := debug.SetMemoryLimit(-1); now != before {
		t.Errorf("the limit became %d", now)
	}
	t.Setenv("GOMEMLIMIT", "")
	restore := Limit(log)
	within := debug.SetMemoryLimit(-1)
	restore()
	if now := debug.SetMemoryLimit(-1); now != before {
		t.Errorf("the limit stayed %d, it was %d", now, before)
	}
	if within <= 0 {
		t.Errorf("the limit was %d", within)
	}
}
