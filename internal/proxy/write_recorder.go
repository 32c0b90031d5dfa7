package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// WriteRecorder is a [Hook] for writes. It records the version of the object to which a write has led, and the holder
// of a written Lease.
type WriteRecorder struct{}

// RoundTrip implements [Hook].
func (WriteRecorder) RoundTrip(x *Exchange, r *http.Request, next Next) (*http.Response, error) {
	response, err := next(r)
	if err != nil || !x.IsAboutObjects() || !x.Verb.IsWrite() || x.Verb == wire.VerbDeleteCollection ||
		response.StatusCode < 200 || response.StatusCode > 299 || x.Query.Has("dryRun") {
		return response, err
	}
	body, err := ReadBody(response)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", x.Recorded(), err)
	}
	var stored struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(body, &stored) != nil {
		return response, nil // the body is no object
	}
	var lease struct {
		HolderIdentity       string `json:"holderIdentity"`
		LeaseDurationSeconds int    `json:"leaseDurationSeconds"`
	}
	if x.Resource == Leases && stored.Spec != nil {
		if err := json.Unmarshal(stored.Spec, &lease); err != nil {
			return nil, fmt.Errorf("read the Lease in the answer to %s: %w", x.Recorded(), err)
		}
	}
	x.Record(func(r *RequestRecord) {
		r.Version, r.Holder = stored.Metadata.ResourceVersion, lease.HolderIdentity
		r.LeaseDuration = time.Duration(lease.LeaseDurationSeconds) * time.Second
	})
	return response, nil
}
