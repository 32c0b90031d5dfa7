package kube

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Selector narrows a list, a watch or a collection. Several selectors must all match. A
// Selector that is not well formed is an error of what it is used for.
type Selector struct {
	labels, fields string
	// match is for lists only.
	match *Match
	err   error
}

var errListsOnly = errors.New("owners and indexes narrow lists only, because servers do not know them: select by labels or fields")

// Labels selects by a label expression, such as "app=web,tier!=cache" or "env in (a,b)".
func Labels(expression string) Selector {
	if _, err := labels.Parse(expression); err != nil {
		return Selector{err: fmt.Errorf("label selector %q: %w", expression, err)}
	}
	return Selector{labels: expression}
}

// Fields selects by a field expression, such as "metadata.name=web". Which fields can be
// selected by is up to the server; metadata.name and metadata.namespace always can.
func Fields(expression string) Selector {
	if _, err := fields.ParseSelector(expression); err != nil {
		return Selector{err: fmt.Errorf("field selector %q: %w", expression, err)}
	}
	return Selector{fields: expression}
}

// withoutMatches are those that servers know.
func withoutMatches(selectors []Selector) []Selector {
	return slices.DeleteFunc(slices.Clone(selectors), func(s Selector) bool { return s.match != nil })
}

// join makes one label expression and one field expression of many.
func join(selectors []Selector) (labelSelector, fieldSelector string, err error) {
	var l, f []string
	var errs []error
	for _, s := range selectors {
		if s.labels != "" {
			l = append(l, s.labels)
		}
		if s.fields != "" {
			f = append(f, s.fields)
		}
		errs = append(errs, s.err)
	}
	return strings.Join(l, ","), strings.Join(f, ","), errors.Join(errs...)
}

// selectorQuery puts selectors into a query, which is nil if there are none.
func selectorQuery(labelSelector, fieldSelector string) url.Values {
	q := url.Values{}
	if labelSelector != "" {
		q.Set("labelSelector", labelSelector)
	}
	if fieldSelector != "" {
		q.Set("fieldSelector", fieldSelector)
	}
	return q
}
