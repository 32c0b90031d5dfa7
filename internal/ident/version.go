package ident

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Version is one version of one object: its uid and its resourceVersion.
type Version struct {
	uid    UID
	number uint64
	// odd is nil for all that servers write.
	odd *odd
}

// odd is what cannot be told from the short forms; the others are empty.
type odd struct {
	uid     types.UID
	version string
}

// Of is the Version of that uid and resourceVersion.
func NewVersion(uid types.UID, resourceVersion string) Version {
	var v Version
	var o odd
	var exact bool
	if v.uid, exact = NewUID(string(uid)); !exact {
		o.uid = uid
	}
	if v.number, exact = makeVersion(resourceVersion); !exact {
		o.version = resourceVersion
	}
	if o != (odd{}) {
		v.odd = &o
	}
	return v
}

// UID is the uid.
func (v Version) UID() types.UID {
	switch {
	case v.odd != nil && v.odd.uid != "":
		return v.odd.uid
	case v.uid != UID{}:
		return v.uid.String()
	default:
		return ""
	}
}

// ResourceVersion is the resourceVersion.
func (v Version) ResourceVersion() string {
	switch {
	case v.odd != nil && v.odd.version != "":
		return v.odd.version
	case v.number != 0:
		return strconv.FormatUint(v.number, 10)
	default:
		return ""
	}
}

// Same tells whether both are the same version of the same object.
func (v Version) Same(o Version) bool {
	return v.number == o.number && v.text().version == o.text().version && v.SameObject(o)
}

// SameObject tells whether both are versions of the same object.
func (v Version) SameObject(o Version) bool {
	return v.uid == o.uid && v.text().uid == o.text().uid
}

// Older tells whether v has the lower resourceVersion, as numbers. What cannot be compared is
// not older.
func (v Version) Older(o Version) bool {
	if v.number != 0 && o.number != 0 {
		return v.number < o.number
	}
	order, err := resourceversion.CompareResourceVersion(v.ResourceVersion(), o.ResourceVersion())
	return err == nil && order < 0
}

func (v Version) text() odd {
	if v.odd == nil {
		return odd{}
	}
	return *v.odd
}
