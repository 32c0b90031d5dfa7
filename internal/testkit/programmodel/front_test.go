package programmodel

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// front stands between a program and the server. It answers discovery, makes the pages of lists small, and answers 404
// while a proxy has no route to the server, or while the kind of the children is not served.
type front struct {
	server *fakeserver.Server
	// broken is why the program cannot read the gammas.
	broken brokenKind

	mu sync.Mutex
	// pageItems is how many objects a page of a list has at most, or 0.
	pageItems int
	// hasNoRoute is true while a proxy answers every request with 404.
	hasNoRoute bool
	// isAbsent is true while the server does not serve the kind of the children.
	isAbsent bool
}

// brokenKind is why a program cannot read the objects of one of its kinds, the gammas. The other kinds must not suffer from it.
type brokenKind string

const (
	// readable is the state of a program that does not have the kind.
	readable    brokenKind = ""
	forbidden   brokenKind = "forbidden"
	absent      brokenKind = "absent"
	undecodable brokenKind = "undecodable"
)

// set changes the front under its lock.
func (f *front) set(change func(*front)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// refuse returns the error 404 if the proxy has no route, or the server does not serve the kind. Otherwise it returns nil.
func (f *front) refuse(r *wire.Request) error {
	f.mu.Lock()
	hasNoRoute := f.hasNoRoute
	f.mu.Unlock()
	if hasNoRoute {
		return notFound(r)
	}
	return f.refuseAbsent(r)
}

// refuseAbsent returns the error 404 if the server does not serve the kind, and nil otherwise.
func (f *front) refuseAbsent(r *wire.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isAbsent && r.Resource.Plural == childResource.Plural {
		return notFound(r)
	}
	return nil
}

// notFound returns the answer 404 without a Status.
func notFound(r *wire.Request) error {
	return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusNotFound}
}

func (f *front) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Resource.Plural == "" {
		return f.discover(r)
	}
	if r.Resource.Plural == "gammas" {
		switch f.broken {
		case forbidden:
			return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusForbidden}
		case absent:
			return nil, notFound(r)
		}
	}
	f.mu.Lock()
	pageItems := f.pageItems
	f.mu.Unlock()
	if r.Verb == wire.VerbList && pageItems > 0 {
		small := *r
		small.Query = make(url.Values, len(r.Query))
		for name, values := range r.Query {
			small.Query[name] = values
		}
		small.Query.Set("limit", strconv.Itoa(pageItems))
		r = &small
	}
	return f.server.Do(ctx, r)
}

// discover answers a request for the groups of the server, or for the resources of the version of the group.
func (f *front) discover(r *wire.Request) (*wire.Response, error) {
	if err := f.refuse(r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var list any = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{
		{Name: group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: group + "/v1", Version: "v1"}}},
	}}
	if r.Resource.Version != "" {
		resources := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: group + "/v1"}
		kinds := map[string]string{"alphas": "Alpha", "betas": "Beta", "waiters": "Waiter", "children": "Child", "gammas": "Gamma"}
		if f.isAbsent {
			delete(kinds, childResource.Plural)
		}
		if f.broken == absent {
			delete(kinds, "gammas")
		}
		for plural, kind := range kinds {
			resources.APIResources = append(resources.APIResources,
				metav1.APIResource{Name: plural, Kind: kind, Namespaced: true},
				metav1.APIResource{Name: plural + "/status", Kind: kind, Namespaced: true})
		}
		list = resources
	}
	body, err := kube.Marshal(list)
	return &wire.Response{Code: http.StatusOK, Body: body}, err
}
