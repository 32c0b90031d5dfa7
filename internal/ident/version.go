package ident

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Version is one version of one object: its uid and its resource version. Either may be empty.
//
// Types that add something to a version, and why they are no Version:
//
//	follow.trackedVersion         with the key of the object
//	restoration.expectedVersion   with the key and the time of an answer (package internal/cache/internal/restoration)
//	echo.Version, ShownVersion    of a write, and of what streams have published (package controller/internal/echo)
//	history.Version               with the whole object, in an exploration (package explore/internal/history)
type Version struct {
	uid    UID
	number uint64
	// inexact is nil if uid and number are exact, as they are for all that API servers write.
	inexact *inexact
}

// inexact holds the texts that the short forms do not give back. A text whose short form is
// exact is empty.
type inexact struct {
	uid             types.UID
	resourceVersion string
}

// NewVersion returns the Version of uid and resourceVersion.
func NewVersion(uid types.UID, resourceVersion string) Version {
	var v Version
	var texts inexact
	var exact bool
	if v.uid, exact = NewUID(string(uid)); !exact {
		texts.uid = uid
	}
	if v.number, exact = parseVersion(resourceVersion); !exact {
		texts.resourceVersion = resourceVersion
	}
	if texts != (inexact{}) {
		kept := texts // only this one is on the heap
		v.inexact = &kept
	}
	return v
}

// parseVersion returns a resource version as a number. exact reports whether text is that number as servers write it:
// 12 is exact, and 012 and x12 are not. For a text that is not exact, parseVersion returns 0.
func parseVersion(text string) (v uint64, exact bool) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || text[0] == '0' || text[0] == '+' {
		return 0, false
	}
	return v, true
}

// UID returns the uid.
func (v Version) UID() types.UID {
	switch {
	case v.inexact != nil && v.inexact.uid != "":
		return v.inexact.uid
	case v.uid != UID{}:
		return v.uid.String()
	default:
		return ""
	}
}

// ResourceVersion returns the resource version.
func (v Version) ResourceVersion() string {
	switch {
	case v.inexact != nil && v.inexact.resourceVersion != "":
		return v.inexact.resourceVersion
	case v.number != 0:
		return strconv.FormatUint(v.number, 10)
	default:
		return ""
	}
}

// Equal reports whether v and o are the same version of the same object.
func (v Version) Equal(o Version) bool {
	return v.number == o.number && v.texts().resourceVersion == o.texts().resourceVersion && v.HasSameUID(o)
}

// HasSameUID reports whether v and o are versions of the same object.
func (v Version) HasSameUID(o Version) bool {
	return v.uid == o.uid && v.texts().uid == o.texts().uid
}

// Before reports whether the resource version of v is lower than the resource version of o. See [IsNewer].
func (v Version) Before(o Version) bool {
	if v.number != 0 && o.number != 0 {
		return v.number < o.number
	}
	return IsNewer(o.ResourceVersion(), v.ResourceVersion())
}

func (v Version) texts() inexact {
	if v.inexact == nil {
		return inexact{}
	}
	return *v.inexact
}

// Resource versions of one resource are compared as numbers (KEP-5504). A version that is no
// number cannot be compared: Compare returns 0 for it, and the other functions return false.

// IsNewer reports whether resource version a is later than b.
func IsNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Compare returns 1 if resource version a is later than b, -1 if b is later, and 0 if they are equal or cannot be
// compared.
func Compare(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

// HasReached reports whether resource version a is b or later.
func HasReached(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order >= 0
}

// IsComparable reports whether a resource version can be compared with others.
func IsComparable(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, "1")
	return err == nil
}

// NeverVersion is no object's resourceVersion: etcd has its first revision while it is empty. A server ignores this
// version if an apply creates the object, and refuses the apply with a conflict if the object exists.
const NeverVersion = "1"
