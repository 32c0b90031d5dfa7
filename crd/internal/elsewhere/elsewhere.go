// Package elsewhere has types for the tests of package crd.
package elsewhere

import "embed"

// Source holds the comments of this package.
//
//go:embed elsewhere.go
var Source embed.FS

// Part is a part.
type Part struct {
	// Size is its size.
	Size int32 `json:"size"`
}

// Kind is a kind.
type Kind string

// Wrong has a mistake.
type Wrong struct {
	// Size is wrong.
	Size int32 `json:"size" crd:"minLength=1"`
}

// Generic is of any type.
type Generic[T any] struct {
	// Value is any.
	Value T `json:"value"`
}

// Common is embedded.
type Common struct {
	// Owner is whom to ask.
	Owner string `json:"owner"`
}
