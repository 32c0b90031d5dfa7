package page

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
func parameter(query url.Values, name string) string { return strings.TrimSpace(query.Get(name)) }

// matches reports whether the filter selects a reconcile, apart from Before.
func (f filter) matches(r *reconcile) bool {
	switch {
	case f.Kind != "" && f.Kind != r.Object.Kind,
		f.Namespace != "" && f.Namespace != r.Object.Namespace,
		f.Name != "" && !containsFold(r.Object.Name, f.Name),
		f.Cause != "" && !containsFold(r.Causes, f.Cause),
		f.Show == "changed" && !r.HasChanged,
		f.Show == "failed" && r.Error == "":
		return false
	}
	return true
}

// containsFold reports whether text contains part, whatever the case of the letters.
func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// writeFilter writes the form of a filter. kinds are the kinds to choose from. isGiven is true if the reader has given
// a filter.
func writeFilter(m *markup, f filter, kinds []string, isGiven bool) {
	m.write(
		`<form class="filter" method="get" action="live-page"><label>Kind <select name="kind"><option value="">all</option>`)
	for _, kind := range kinds {
		writeOption(m, kind, kind, f.Kind)
	}
	m.write(`</select></label><label>Namespace <input type="search" name="namespace" placeholder="all" value="%"></label>`+
		`<label>Name <input type="search" name="name" placeholder="any part" value="%"></label>`+
		`<label>Cause <input type="search" name="cause" placeholder="any part" value="%"></label><label>Show <select name="show">`, f.Namespace, f.Name, f.Cause)
	writeOption(m, "", "all", f.Show)
	writeOption(m, "changed", "that changed something", f.Show)
	writeOption(m, "failed", "with an error", f.Show)
	m.write(`</select></label><button>Filter</button> `)
	if isGiven {
		m.write(`<a href="live-page">Show all</a>`)
	}
	m.write(`</form>`)
}

// writeOption writes a choice of a form. It is selected if its value is the chosen one.
func writeOption(m *markup, value, text, chosen string) {
	selected := ""
	if value == chosen {
		selected = " selected"
	}
	m.write(`<option value="%"%>%</option>`, value, selected, text)
}
