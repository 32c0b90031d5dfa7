package manifests

import (
	"maps"
	"slices"
	"strings"
)

// PrintGrants prints what the roles of an installation allow that its user should know of: wildcards, writes of
// Secrets, and writes in the whole cluster. The groups are those that the program defines: their objects are its own.
// Reviews store nothing.
func PrintGrants(objects []Object, groups []string, printNote func(string)) {
	g := grants{
		groups: groups, wildcards: make(map[string]bool), secrets: make(map[string]bool), everywhere: make(map[string]bool),
	}
	for _, object := range objects {
		kind := Kind(object)
		_, isInstalled := ObjectAt(object, "metadata", "labels")[LabelNamespace]
		if !isInstalled || kind != "Role" && kind != "ClusterRole" {
			continue
		}
		rules, _ := object["rules"].([]any)
		for _, each := range rules {
			if rule, ok := each.(Object); ok {
				g.add(rule, Name(object), kind == "ClusterRole")
			}
		}
	}
	for _, each := range []struct {
		lines map[string]bool
		text  string
	}{
		{g.wildcards, "the roles have wildcards, which also allow what nobody knows today: name the resources and the verbs in place of controller.Allow"},
		{
			g.secrets,
			"the roles allow writes of Secrets, in which others may keep credentials: name the Secrets, with the method Named",
		},
		{g.everywhere, "the roles allow writes in all namespaces, kube-system included: --watch-namespace narrows them"},
	} {
		if len(each.lines) > 0 {
			printNote(each.text + "\n  " + strings.Join(slices.Sorted(maps.Keys(each.lines)), "\n  "))
		}
	}
}

// grants collects lines about rules, such as "create, patch deployments.apps".
type grants struct {
	wildcards, secrets, everywhere map[string]bool
	// groups are those of the kinds that the program defines.
	groups []string
}

// add adds a rule of a role. isCluster is true if it stands in a ClusterRole. A rule about the Roles of the
// installation itself, which have the name of its ClusterRole, is left out: the server lets the program grant nobody
// more than it has.
func (g grants) add(rule Object, role string, isCluster bool) {
	names := textsOf(rule["resourceNames"])
	if isCluster && slices.Equal(names, []string{role}) && slices.Contains(textsOf(rule["resources"]), "rolebindings") {
		return
	}
	verbs := textsOf(rule["verbs"])
	writes := slices.DeleteFunc(slices.Clone(verbs),
		func(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" })
	urls := textsOf(rule["nonResourceURLs"])
	if slices.ContainsFunc(urls, isWildcard) || len(urls) > 0 && slices.ContainsFunc(verbs, isWildcard) {
		g.wildcards[strings.Join(verbs, ", ")+" "+strings.Join(urls, ", ")] = true
	}
	for _, group := range textsOf(rule["apiGroups"]) {
		for _, resource := range textsOf(rule["resources"]) {
			name, subresource, isSub := strings.Cut(resource, "/")
			what := name
			if group != "" {
				what += "." + group
			}
			if isSub {
				what += "/" + subresource
			}
			if names := textsOf(rule["resourceNames"]); len(names) > 0 {
				what += " " + strings.Join(names, ", ")
			}
			if slices.ContainsFunc(verbs, isWildcard) || isWildcard(group) || isWildcard(resource) {
				g.wildcards[strings.Join(verbs, ", ")+" "+what] = true
			}
			isReview := group == "authentication.k8s.io" || group == "authorization.k8s.io"
			switch line := strings.Join(writes, ", ") + " " + what; {
			case len(writes) == 0:
			case (group == "" || isWildcard(group)) && (name == "secrets" || isWildcard(name)) &&
				len(textsOf(rule["resourceNames"])) == 0:
				g.secrets[line] = true
				if isCluster {
					g.everywhere[line] = true
				}
			case isCluster && !slices.Contains(g.groups, group) && !isReview:
				g.everywhere[line] = true
			}
		}
	}
}

// isWildcard reports whether a word of a rule stands for all words, or for all that begin or end alike.
func isWildcard(word string) bool { return strings.Contains(word, "*") }

// textsOf returns the strings of a list of decoded JSON.
//
//go:noinline
func textsOf(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
