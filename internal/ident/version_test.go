package ident

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

const plain = types.UID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")

// A Version returns the texts that it was made of. Two Versions are equal if their texts are equal.
func TestVersion(t *testing.T) {
	t.Parallel()
	uids := []types.UID{"", plain, "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "00000000-0000-0000-0000-000000000000", "odd", "other"}
	versions := []string{"", "0", "1", "12", "012", "+1", "18446744073709551615", "18446744073709551616", "abc"}
	for _, u := range uids {
		for _, v := range versions {
			one := NewVersion(u, v)
			if one.UID() != u || one.ResourceVersion() != v {
				t.Errorf("%q at %q became %q at %q", u, v, one.UID(), one.ResourceVersion())
			}
			for _, u2 := range uids {
				for _, v2 := range versions {
					other := NewVersion(u2, v2)
					if one.HasSameUID(other) != (u == u2) || one.Equal(other) != (u == u2 && v == v2) {
						t.Errorf("%q at %q and %q at %q: same object %t, same %t", u, v, u2, v2, one.HasSameUID(other), one.Equal(other))
					}
				}
			}
		}
	}
}

// Versions are compared as numbers. What cannot be compared is not older.
func TestBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"9", "10", true},
		{"10", "9", false},
		{"9", "9", false},
		{"18446744073709551615", "18446744073709551616", true},
		{"18446744073709551616", "5", false},
		{"", "5", false},
		{"abc", "5", false},
		{"5", "abc", false},
		{"0", "5", false}, // no version that a server writes
	} {
		if got := NewVersion(plain, c.a).Before(NewVersion(plain, c.b)); got != c.want {
			t.Errorf("%q is older than %q: %t", c.a, c.b, got)
		}
	}
}
