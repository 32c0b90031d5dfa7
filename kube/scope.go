package kube

import (
	"errors"
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube/wire"
)

// scope is the cluster and the namespaces that a client is narrowed to.
type scope struct {
	// cluster is empty for the home cluster.
	cluster string
	// namespaces are sorted. A client of all namespaces has none.
	namespaces []string
	// err is what is wrong with namespaces. It is the error of each use of all namespaces.
	err error
}

// narrow returns s in some namespaces.
func (s scope) narrow(namespaces []string) scope {
	s.namespaces, s.err = slices.Compact(slices.Sorted(slices.Values(namespaces))), nil
	switch {
	case len(namespaces) == 0:
		s.err = errors.New("the client is narrowed to no namespaces: name at least one, or use Client.AllNamespaces")
	case slices.Contains(namespaces, ""):
		s.err = errors.New("the client is narrowed to a namespace whose name is empty: name it, or use Client.AllNamespaces")
	}
	return s
}

// streams returns the streams of the objects of t that selectors select: one for each namespace of s,
// unless t is in one namespace.
//
// A client that is narrowed to the namespaces "a" and "b" has two streams of all Pods: Pods in "a", and
// Pods in "b". It has one stream of all Nodes, because Nodes are cluster-scoped.
func (s scope) streams(t target, selectors []Selector) ([]wire.Stream, error) {
	labelSelector, fieldSelector, err := joinSelectors(selectors)
	if slices.ContainsFunc(selectors, func(each Selector) bool { return each.match != nil }) {
		err = errors.Join(err, errListsOnly)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.resource, err)
	}
	namespaces := []string{t.namespace}
	if t.namespace == "" && !t.resource.ClusterScoped && len(s.namespaces) > 0 {
		namespaces = s.namespaces
	}
	streams := make([]wire.Stream, 0, len(namespaces))
	for _, namespace := range namespaces {
		streams = append(streams, wire.Stream{
			Cluster: s.cluster, Resource: t.resource, Namespace: namespace,
			LabelSelector: labelSelector, FieldSelector: fieldSelector, Representation: t.representation,
		})
	}
	return streams, nil
}
