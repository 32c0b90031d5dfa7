package access

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// permissions holds the granted verbs of each target.
type permissions map[target]map[wire.Verb]bool

// target is what a permission is about.
type target struct {
	group string
	// resource is the plural name, followed by a slash and the subresource if the permission is about a subresource.
	resource string
	// name is the name of the object. An empty name means all objects.
	name string
}

// all returns the target t for all objects.
func (t target) all() target { return target{group: t.group, resource: t.resource} }

// resourceName returns a resource as a rule names it.
func resourceName(plural, subresource string) string {
	if subresource == "" {
		return plural
	}
	return plural + "/" + subresource
}

// add adds the permissions that a declares.
//
//go:noinline
func (p permissions) add(a kube.Access) {
	t := target{group: a.Resource.Group, resource: resourceName(a.Resource.Plural, a.Subresource)}
	names := a.Names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, t.name = range names {
		for _, verb := range a.Verbs {
			p.grant(t, verb)
		}
	}
}

func (p permissions) grant(t target, verb wire.Verb) {
	if p[t] == nil {
		p[t] = make(map[wire.Verb]bool)
	}
	p[t][verb] = true
}

// minus returns the permissions of p that other lacks.
func (p permissions) minus(other permissions) permissions {
	rest := make(permissions)
	for t, verbs := range p {
		for verb := range verbs {
			if !other[t][verb] && !other[t.all()][verb] {
				rest.grant(t, verb)
			}
		}
	}
	return rest
}

// rules returns p as rules. Objects of a resource with the same verbs share a rule. Resources of a group with the
// same verbs share a rule, too.
//
// For example, p grants get on webapps, get and list on all configmaps, get on the configmap a, get on the secret
// a, and get on the secret b. The rules are: get on webapps; get and list on configmaps; get on the secrets a and
// b. The configmap a needs no rule, because all configmaps have its verb.
func (p permissions) rules() []kube.PolicyRule {
	// granted is verbs on one resource: on all objects, or on some by their names.
	type granted struct {
		group, resource, verbs string
		isNamed                bool
	}
	names := make(map[granted][]string)
	for t, verbs := range p {
		needed := make([]wire.Verb, 0, len(verbs))
		for verb := range verbs {
			if t.name == "" || !p[t.all()][verb] {
				needed = append(needed, verb)
			}
		}
		if len(needed) == 0 {
			continue
		}
		g := granted{group: t.group, resource: t.resource, verbs: joinVerbs(needed), isNamed: t.name != ""}
		if g.isNamed {
			names[g] = append(names[g], t.name)
		} else {
			names[g] = nil
		}
	}
	// shared is what the resources of one rule have in common. names is empty for all objects.
	type shared struct{ group, verbs, names string }
	resources := make(map[shared][]string)
	for g, objects := range names {
		slices.Sort(objects)
		key := shared{group: g.group, verbs: g.verbs, names: strings.Join(objects, " ")}
		resources[key] = append(resources[key], g.resource)
	}
	var rules []kube.PolicyRule
	for key, plurals := range resources {
		slices.Sort(plurals)
		rule := kube.PolicyRule{APIGroups: []string{key.group}, Resources: plurals, Verbs: strings.Fields(key.verbs)}
		if key.names != "" {
			rule.ResourceNames = strings.Fields(key.names)
		}
		rules = append(rules, rule)
	}
	return sortedRules(rules)
}

// SortVerbs sorts verbs in the order of rules: reads, then writes, then all other verbs in alphabetical order.
func SortVerbs(verbs []wire.Verb) {
	first := []wire.Verb{
		wire.VerbGet, wire.VerbList, wire.VerbWatch,
		wire.VerbCreate, wire.VerbUpdate, wire.VerbPatch, wire.VerbDelete, wire.VerbDeleteCollection,
	}
	rank := func(verb wire.Verb) int {
		if i := slices.Index(first, verb); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortFunc(verbs, func(a, b wire.Verb) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
}

// joinVerbs returns verbs in order, with spaces between them.
func joinVerbs(verbs []wire.Verb) string {
	SortVerbs(verbs)
	words := make([]string, len(verbs))
	for i, verb := range verbs {
		words[i] = string(verb)
	}
	return strings.Join(words, " ")
}

// sortText returns a text of a rule. Different rules have different texts, and the texts of rules
// compare as the fields of the rules do, one after the other.
func sortText(r kube.PolicyRule) string {
	var text strings.Builder
	for _, field := range [][]string{r.APIGroups, r.Resources, r.ResourceNames, r.Verbs, r.NonResourceURLs} {
		for _, word := range field {
			text.WriteString(word + "\x01")
		}
		text.WriteByte(0)
	}
	return text.String()
}
