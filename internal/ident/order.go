package ident

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Resource versions of one resource are compared as numbers (KEP-5504). A version that is no
// number cannot be compared: all functions report false for it.

// IsNewer reports whether resource version a is later than b.
func IsNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Compare returns 1 if resource version a is later than b, -1 if b is later, and 0 if they are equal or cannot be compared.
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
