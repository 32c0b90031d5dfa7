package proxy

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// Observation is a version of a workload that a program received: by the answer to a read, or on a watch. The first
// objects of a streaming list are among them. Workloads are Deployments, StatefulSets and DaemonSets.
type Observation struct {
	Session, Resource, Name, ResourceVersion string
	At                                       time.Time
}

// IsWorkload reports whether observations of a resource are recorded.
func IsWorkload(resource string) bool {
	return slices.Contains([]string{"deployments.apps", "statefulsets.apps", "daemonsets.apps"}, resource)
}

// ReadRecorder is a [Hook] for reads. It records the versions of workloads that a program received, and a hash of the
// versions in each answer. It comes before all hooks that change answers.
type ReadRecorder struct {
	mu  sync.Mutex
	all []Observation
}

// RoundTrip implements [Hook].
func (r *ReadRecorder) RoundTrip(x *Exchange, request *http.Request, next Next) (*http.Response, error) {
	response, err := next(request)
	isRead := x.IsAboutObjects() && (x.Verb == wire.VerbGet || x.Verb == wire.VerbList)
	if err != nil || !isRead || IsBackground(x.Resource) || response.StatusCode != http.StatusOK {
		return response, err
	}
	body, err := ReadBody(response)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", x.Recorded(), err)
	}
	type object struct {
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	var answer struct {
		object
		Items []object `json:"items"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return response, nil // the body is no object
	}
	objects := answer.Items
	if x.Verb == wire.VerbGet {
		objects = []object{answer.object}
	}
	hash := fnv.New64a()
	for _, o := range objects {
		fmt.Fprintf(hash, "%s %s\n", o.Metadata.Name, o.Metadata.ResourceVersion)
	}
	x.Record(func(r *RequestRecord) { r.AnswerHash = hash.Sum64() })
	if IsWorkload(x.Resource) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, o := range objects {
			r.all = append(r.all,
				Observation{x.Session.Name(), x.Resource, o.Metadata.Name, o.Metadata.ResourceVersion, time.Now()})
		}
	}
	return response, nil
}

// Observations returns the observations by reads so far, in the order of time.
func (r *ReadRecorder) Observations() []Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}
