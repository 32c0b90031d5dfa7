package livepage

import (
	"net/url"
	"strconv"
	"strings"
)

// filter selects reconciles. An empty field selects all.
type filter struct {
	Kind, Namespace string
	// Name and Cause are parts of the name and of the causes. Upper and lower case are the same.
	Name, Cause string
	// Show is "changed" for the reconciles that have changed something, and "failed" for those with an error.
	Show string
	// Before selects the reconciles with a lower number. 0 selects all.
	Before uint64
}

// filterOf returns the filter of a query.
func filterOf(query url.Values) filter {
	f := filter{
		Kind: parameter(query, "kind"), Namespace: parameter(query, "namespace"), Name: parameter(query, "name"),
		Cause: parameter(query, "cause"), Show: parameter(query, "show"),
	}
	f.Before, _ = strconv.ParseUint(parameter(query, "before"), 10, 64) // another text selects all
	return f
}

// parameter returns a parameter of a query, without the spaces around it.
//
//go:noinline
func parameter(query url.Values, name string) string { return strings.TrimSpace(query.Get(name)) }

// matches reports whether the filter selects a reconcile, apart from Before.
func (f filter) matches(r *reconcile) bool {
	switch {
	case f.Kind != "" && f.Kind != r.Object.Kind,
		f.Namespace != "" && f.Namespace != r.Object.Namespace,
		f.Name != "" && !containsFold(r.Object.Name, f.Name),
		f.Cause != "" && !containsFold(r.Causes, f.Cause),
		f.Show == "changed" && !r.hasChanged(),
		f.Show == "failed" && r.Error == "":
		return false
	}
	return true
}

// containsFold reports whether text contains part, whatever the case of the letters.
func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
