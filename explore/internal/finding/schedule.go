package finding

import (
	"encoding/json"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// Schedule is everything that happens in a run: the steps of the user, and the faults. It stands in the file of a
// finding, so that the run can be replayed:
//
//	{
//	  "seed": 1,
//	  "steps": [
//	    {"name": "apply the samples", "apply": [{"apiVersion": "example.com/v1", "kind": "WebApp", ...}]},
//	    {"name": "delete the samples", "delete": [{"resource": "webapps.example.com", "name": "web"}]}
//	  ],
//	  "faults": [{
//	    "kind": "crash", "restart": "rest",
//	    "at": {"step": 0, "verb": "patch", "resource": "deployments.apps", "name": "web", "changeHash": "5f0c", "occurrence": 1}
//	  }]
//	}
//
// The fault of this run happens at a point: the first such request of the program in step 0. The program crashes
// before the server receives the request, and starts again at rest. A replay arms the same triggers again. A replay is
// not exact to the bit, because the program and the control plane have threads of their own.
type Schedule struct {
	// Seed is the seed of the exploration that planned the run.
	Seed uint64 `json:"seed,omitempty"`
	// Steps are the steps of the user. A step begins when the program has come to rest after the step
	// before.
	Steps  []Step        `json:"steps"`
	Faults faults.Faults `json:"faults,omitempty"`
	// Comparison is what the states at rest are compared with. Default: the states of the references in a run with
	// faults, and in a run without faults the states of programs that have seen only the objects of the step.
	Comparison Comparison `json:"comparison,omitempty"`
}

// Comparison is what the states at rest of a run are compared with.
type Comparison string

// The comparisons that differ from the default.
const (
	// CompareChildren counts the children of several samples of one kind. Each sample must have as many children as the
	// sample of the references, and no child may belong to two samples.
	CompareChildren Comparison = "children"
	// CompareEnd compares only the state after the last step, with the last state of the references.
	CompareEnd Comparison = "end"
)

// Step is one thing that the user does: the user applies objects, deletes objects, or both.
type Step struct {
	Name string `json:"name"`
	// Apply are the objects that the user applies, by server-side apply.
	Apply []json.RawMessage `json:"apply,omitempty"`
	// IsPaced is true if the user waits for the program for a moment after each object that is applied.
	IsPaced bool `json:"isPaced,omitempty"`
	// Delete are the objects that the user deletes. The step does not wait until they are gone.
	Delete []faults.Object `json:"delete,omitempty"`
	// IsUncompared is true if nobody knows the right state after the step, for example because a reference is missing.
	IsUncompared bool `json:"uncompared,omitempty"`
}
