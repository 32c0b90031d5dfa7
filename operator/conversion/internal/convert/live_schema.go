package convert

import (
	"bytes"
	"maps"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// withFields returns own with the properties that only live has. It returns own itself if there are none.
func withFields(own, live *crd.Schema) *crd.Schema {
	if own == nil || live == nil {
		return own
	}
	result := *own
	isChanged := false
	for name, theirs := range live.Properties {
		ours := own.Properties[name]
		field := theirs
		if ours != nil {
			field = withFields(ours, theirs)
		}
		if field == ours || ours == nil && !hasFields(own) {
			continue
		}
		if !isChanged {
			result.Properties = maps.Clone(own.Properties)
		}
		isChanged, result.Properties[name] = true, field
	}
	for _, inner := range []struct{ ours, theirs, result **crd.Schema }{
		{&own.Items, &live.Items, &result.Items},
		{&own.AdditionalProperties, &live.AdditionalProperties, &result.AdditionalProperties},
	} {
		*inner.result = withFields(*inner.ours, *inner.theirs)
		isChanged = isChanged || *inner.result != *inner.ours
	}
	if !isChanged {
		return own
	}
	return &result
}

// hasFields reports whether s is an object that has certain fields and no others.
func hasFields(s *crd.Schema) bool {
	return s != nil && len(s.Properties) > 0 && s.AdditionalProperties == nil && !s.PreserveUnknownFields
}

// foreignPaths collects the paths of the fields that are copied between two versions.
type foreignPaths struct{ paths [][]string }

// add adds the fields below path that both schemas of the cluster have, that are equal, and that none of the own
// schemas has.
func (p *foreignPaths) add(path []string, ownFrom, ownTo, from, to *crd.Schema) {
	if !hasFields(ownFrom) || !hasFields(ownTo) || from == nil || to == nil {
		return
	}
	for name, theirs := range from.Properties {
		field := append(path[:len(path):len(path)], name)
		ours, oursTo, theirsTo := ownFrom.Properties[name], ownTo.Properties[name], to.Properties[name]
		switch {
		case theirsTo == nil || len(path) == 0 && isFixed(name):
		case ours != nil && oursTo != nil:
			p.add(field, ours, oursTo, theirs, theirsTo)
		case ours == nil && oursTo == nil && areSameSchemas(theirs, theirsTo):
			p.paths = append(p.paths, field)
		}
	}
}

// areSameSchemas reports whether two schemas are the same.
func areSameSchemas(a, b *crd.Schema) bool {
	first, err := kube.Marshal(a)
	second, otherErr := kube.Marshal(b)
	return err == nil && otherErr == nil && bytes.Equal(first, second)
}

// copyField copies the field at path from one object to another one, which is new, unless the other one has the field.
func copyField(path []string, from, to map[string]any) {
	name := path[0]
	value, isThere := from[name]
	there, isInTarget := to[name]
	if len(path) == 1 {
		if isThere && !isInTarget {
			to[name] = value
		}
		return
	}
	object, isObject := value.(map[string]any)
	target, isTargetObject := there.(map[string]any)
	if !isObject || isInTarget && !isTargetObject {
		return
	}
	if target == nil {
		target = make(map[string]any)
	}
	if copyField(path[1:], object, target); len(target) > 0 {
		to[name] = target
	}
}
