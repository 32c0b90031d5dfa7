package crd

import (
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
)

// newScale returns the scale subresource that d asks for. The paths of d must name fields of root that a server can
// read. owner is the name of the type with the Definition, for problems.
func newScale(root *Schema, owner string, d kube.ScalePaths, p *problems) *Scale {
	s := &Scale{SpecReplicasPath: d.SpecReplicas, StatusReplicasPath: d.StatusReplicas, LabelSelectorPath: d.Selector}
	if s.SpecReplicasPath == "" {
		s.SpecReplicasPath = ".spec.replicas"
	}
	if s.StatusReplicasPath == "" {
		s.StatusReplicasPath = ".status.replicas"
	}
	check := func(what, path, kind string, under ...string) {
		name := owner + ": its Definition's Scale"
		if !slices.ContainsFunc(under, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			p.addf(name, "%s %q must begin with %s", what, path, strings.Join(under, " or "))
			return
		}
		switch found, isPlain := schemaAtPath(root, path); {
		case !isPlain:
			p.addf(name, "%s %q must be a path of field names, as in .spec.replicas", what, path)
		case found == nil:
			p.addf(name, "%s %s names no field; add one of type %s, or name another path", what, path, kind)
		case found.Type != kind:
			p.addf(name, "%s %s is of type %s, and must be of type %s", what, path, found.typeName(), kind)
		}
	}
	check("SpecReplicas", s.SpecReplicasPath, typeInteger, ".spec.")
	check("StatusReplicas", s.StatusReplicasPath, typeInteger, ".status.")
	if s.LabelSelectorPath != "" {
		check("Selector", s.LabelSelectorPath, typeString, ".spec.", ".status.")
	}
	return s
}
