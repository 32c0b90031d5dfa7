package faults

import (
	"slices"

	"github.com/yare-go/yare/internal/proxy"
)

// CanHappenAt reports whether a fault of a request can happen at a point, which a reference was answered with a code.
func CanHappenAt(kind Kind, p proxy.Point, code int) bool {
	kinds := requestKinds()
	return kinds[slices.IndexFunc(kinds, func(k requestKind) bool { return k.kind == kind })].canHappenAt(p, code)
}
