package crd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// scopeName returns the scope of t, in the words of the API.
func scopeName(t kube.Type) string {
	if t.Resource.ClusterScoped {
		return "Cluster"
	}
	return "Namespaced"
}

// mergeNames returns the names of the versions of one kind, and a problem for each name that
// differs.
func mergeNames(types []kube.Type) (Names, []error) {
	first := types[0]
	kind := first.Resource.Kind
	names := Names{
		Plural:   first.Resource.Plural,
		Singular: strings.ToLower(kind),
		Kind:     kind,
		ListKind: kind + "List",
	}
	problems := checkGroup(first)
	disagree := func(a, b kube.Type, what, one, other string) {
		problems = append(problems, fmt.Errorf("%s and %s are versions of one kind %s, but differ in %s: %s and %s",
			ident.GoTypeName(a.Go), ident.GoTypeName(b.Go), kind, what, one, other))
	}
	var short, categories kube.Type
	for _, t := range types {
		if t.Resource.Plural != first.Resource.Plural {
			disagree(first, t, "Plural", first.Resource.Plural, t.Resource.Plural)
		}
		if t.Definition.Foreign != first.Definition.Foreign {
			disagree(first, t, "Foreign", strconv.FormatBool(first.Definition.Foreign), strconv.FormatBool(t.Definition.Foreign))
		}
		if t.Resource.ClusterScoped != first.Resource.ClusterScoped {
			disagree(first, t, "scope", scopeName(first), scopeName(t))
		}
		if own := t.Definition.ShortNames; len(own) > 0 {
			if names.ShortNames != nil && !slices.Equal(names.ShortNames, own) {
				disagree(short, t, "ShortNames", fmt.Sprint(names.ShortNames), fmt.Sprint(own))
			}
			names.ShortNames, short = slices.Clone(own), t
			problems = append(problems, checkLabels(t, "short name", own)...)
		}
		if own := t.Definition.Categories; len(own) > 0 {
			if names.Categories != nil && !slices.Equal(names.Categories, own) {
				disagree(categories, t, "Categories", fmt.Sprint(names.Categories), fmt.Sprint(own))
			}
			names.Categories, categories = slices.Clone(own), t
			problems = append(problems, checkLabels(t, "category", own)...)
		}
		if len(t.Definition.Deprecated) > 256 {
			problems = append(problems,
				fmt.Errorf("%s: the warning in Deprecated has more than 256 bytes", ident.GoTypeName(t.Go)))
		}
	}
	return names, problems
}

// approvalAnnotation is the annotation that a server demands of definitions of community groups:
// see KEP-1111.
const approvalAnnotation = "api-approved.kubernetes.io"

// mergeMetadata returns the labels and annotations of the versions of one kind.
func mergeMetadata(types []kube.Type, addProblem func(error)) (labels, annotations map[string]string) {
	merge := func(
		t kube.Type, what string, into *map[string]string, from map[string]string, check func(value string) []string,
	) {
		for _, key := range slices.Sorted(maps.Keys(from)) {
			value := from[key]
			wrong := append(validation.IsQualifiedName(strings.ToLower(key)), check(value)...)
			if old, taken := (*into)[key]; len(wrong) > 0 {
				addProblem(fmt.Errorf("%s: the Definition's %s %s=%q is not valid: %s",
					ident.GoTypeName(t.Go), what, key, value, wrong[0]))
			} else if taken && old != value {
				addProblem(fmt.Errorf("%s: the Definition's %s %s=%q is %q in another version of the kind",
					ident.GoTypeName(t.Go), what, key, value, old))
			}
			if *into == nil {
				*into = map[string]string{}
			}
			(*into)[key] = value
		}
	}
	for _, t := range types {
		merge(t, "label", &labels, t.Definition.Labels, validation.IsValidLabelValue)
		merge(t, "annotation", &annotations, t.Definition.Annotations, func(string) []string { return nil })
	}
	return labels, annotations
}

// isCommunityGroup reports whether servers accept definitions of this group only with an
// annotation that names their approval: see KEP-1111.
func isCommunityGroup(group string) bool {
	return strings.HasSuffix("."+group, ".k8s.io") || strings.HasSuffix("."+group, ".kubernetes.io")
}

// checkGroup returns a problem if servers refuse the group of t.
func checkGroup(t kube.Type) []error {
	group := t.Resource.Group
	switch {
	case !strings.Contains(group, "."):
		return []error{fmt.Errorf("%s: the Definition's Group %q must be a domain with a dot in it, such as example.com",
			ident.GoTypeName(t.Go), group)}
	case isCommunityGroup(group):
		if t.Definition.Foreign || t.Definition.Annotations[approvalAnnotation] != "" {
			return nil
		}
		return []error{fmt.Errorf("%s: the Definition's Group %q belongs to the Kubernetes community: choose one below a domain of your own, set Foreign in the Definition if another project defines the kind, or add the annotation %s", ident.GoTypeName(t.Go), group, approvalAnnotation)}
	}
	return nil
}

// checkLabels returns a problem for each name that is no DNS label.
func checkLabels(t kube.Type, what string, names []string) (problems []error) {
	for _, name := range names {
		if wrong := validation.IsDNS1035Label(name); len(wrong) > 0 {
			problems = append(problems, fmt.Errorf("%s: the Definition's %s %q is not valid: %s",
				ident.GoTypeName(t.Go), what, name, wrong[0]))
		}
	}
	return problems
}
