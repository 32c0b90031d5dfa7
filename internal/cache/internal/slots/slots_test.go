package slots

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Table finds what a map would, whatever the hashes are.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 131, 2, 130, 1, 255, 127}, uint64(3))
	f.Add([]byte("many of them, some of them twice, and some of them gone"), ^uint64(0))
	f.Fuzz(func(t *testing.T, steps []byte, mask uint64) {
		var table Table
		var keys []byte // by slot
		want := make(map[byte]uint32)
		hash := func(slot uint32) uint64 { return uint64(keys[slot]) * 31 & mask }
		find := func(key byte) (uint32, bool) {
			return table.Find(uint64(key)*31&mask, func(slot uint32) bool { return keys[slot] == key })
		}
		for _, step := range steps {
			key, remove := step&0x7f, step >= 0x80
			slot, has := find(key)
			if expected, there := want[key]; has != there || has && slot != expected {
				t.Fatalf("key %d is in slot %d (%t), want %d (%t)", key, slot, has, expected, there)
			}
			switch {
			case has && remove:
				table.Remove(slot, hash)
				delete(want, key)
			case !has && !remove:
				keys = append(keys, key)
				slot = uint32(len(keys) - 1)
				table.Insert(slot, hash)
				want[key] = slot
			}
			if table.Len() != len(want) {
				t.Fatalf("Len is %d, want %d", table.Len(), len(want))
			}
		}
		for key, expected := range want {
			if slot, has := find(key); !has || slot != expected {
				t.Errorf("key %d is in slot %d (%t), want %d", key, slot, has, expected)
			}
		}
	})
}

// An Index finds what a scan of all slots would, and keeps nothing of values that no slot has.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1, 1, 1, 0, 3, 3, 2, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		x := NewIndex()
		values := make(map[uint32][]uint64)
		for len(steps) >= 3 {
			slot, after := uint32(steps[0]%16), []uint64{uint64(steps[1] % 8), uint64(steps[2] % 8)}
			if after[1] == 0 {
				after = after[:1]
			}
			if after[0] == 0 {
				after = nil
			}
			steps = steps[3:]
			x.Replace(slot, values[slot], after)
			values[slot] = after
		}
		want := make(map[uint64][]uint32)
		for _, slot := range slices.Sorted(maps.Keys(values)) {
			for _, v := range slices.Compact(slices.Sorted(slices.Values(values[slot]))) {
				want[v] = append(want[v], slot)
			}
		}
		if diff := cmp.Diff(want, x.postings); diff != "" {
			t.Error(diff)
		}
	})
}
