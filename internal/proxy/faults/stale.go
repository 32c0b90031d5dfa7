package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Stale answers reads with resourceVersion=0 from the state at the beginning of the step, after a restart of the
// program. Watches from that version are held. A streaming list from version 0 is refused with 422, as by a server
// without streaming lists. A client that never reads with version 0 does not trigger the fault.
const Stale Kind = "stale"

// stale is the family of [Stale].
type stale struct{ baseFamily }

func (stale) Describe() Description {
	return Description{Group: string(Stale), Kinds: []Kind{Stale}, IsDefault: true}
}

// Plan plans a restart after each step.
func (stale) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	return newPlan(in.afterEachStep(in.planned(Stale)...)), nil
}

func (stale) Text(f Fault) string {
	return fmt.Sprintf(
		"stale after step %d: the program starts again, and its lists of version 0 show the state before the step", f.Step+1)
}

func (stale) arm(a *Armed, s stepContext) (effect, error) {
	return staleReads{armed: a, version: s.version}, nil
}

// AfterStep restarts the program while its reads may be stale. When the program has come to rest, it sees the present
// again.
func (stale) AfterStep(ctx context.Context, run *Run, f Fault) error {
	if err := run.CrashProgram("the program is restarted, and may read the past", false); err != nil {
		return err
	}
	armed, err := run.Injector.Arm(f)
	if err != nil {
		return err
	}
	if err := run.RestartProgram(); err != nil {
		return err
	}
	if err := run.WaitForRest(ctx); err != nil {
		return err
	}
	if armed.IsTriggered() {
		run.RecordFault(InProgram, "reads are answered from the past")
	} else {
		run.RecordNotApplicable(f, "the program never asks for the past")
	}
	run.Injector.Disarm()
	return nil
}

// staleReads is the effect of [Stale].
type staleReads struct {
	armed *Armed
	// version is the version that reads see.
	version string
}

// RoundTrip changes a read with resourceVersion=0, so that the server answers with the state of the version. Example:
//
//	GET …/configmaps?resourceVersion=0    becomes GET …/configmaps?resourceVersion=100&resourceVersionMatch=Exact
//	GET …/configmaps/a?resourceVersion=0  becomes the same list with fieldSelector=metadata.name=a
func (s staleReads) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	if !x.IsAboutObjects() || x.Subresource != "" || x.Query.Get("resourceVersion") != "0" {
		return next(r)
	}
	switch {
	case x.Verb == wire.VerbWatch && x.IsStreamingList():
		const message = "sendInitialEvents is forbidden for watch: the server has no streaming lists"
		return proxy.Answer(proxy.NewStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message)), nil
	case x.Verb == wire.VerbList && x.Query.Get("continue") == "", x.Verb == wire.VerbGet:
	default:
		return next(r)
	}
	s.armed.recordTriggered()
	query := r.URL.Query()
	query.Set("resourceVersion", s.version)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	if x.Verb == wire.VerbList {
		r.URL.RawQuery = query.Encode()
		return next(r)
	}
	// Only a list can ask for an exact version.
	query.Set("fieldSelector", "metadata.name="+x.Name)
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path.Dir(r.URL.Path), "", query.Encode()
	r.Header.Set("Accept",
		strings.ReplaceAll(r.Header.Get("Accept"), "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"))
	response, err := next(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	return changeListToGet(response)
}

// changeListToGet changes the answer to a list in place of a get to the answer to the get.
func changeListToGet(response *http.Response) (*http.Response, error) {
	body, err := proxy.ReadBody(response)
	if err != nil {
		return nil, err
	}
	var list struct {
		APIVersion string                       `json:"apiVersion"`
		Kind       string                       `json:"kind"`
		Items      []map[string]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the list in place of a get: %w", err)
	}
	if len(list.Items) == 0 {
		return proxy.Answer(proxy.NewStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "the object is not found")), nil
	}
	object := list.Items[0]
	if object["kind"] == nil { // the items of built-in kinds lack both
		object["apiVersion"], _ = kube.Marshal(list.APIVersion)
		object["kind"], _ = kube.Marshal(strings.TrimSuffix(list.Kind, "List"))
	}
	if body, err = kube.Marshal(object); err != nil {
		return nil, err
	}
	proxy.SetBody(response, body)
	return response, nil
}

// Decide holds a watch from the version.
func (s staleReads) Decide(x *proxy.Exchange, _ proxy.Event) proxy.Decision {
	if x.IsStreamingList() || x.Query.Get("resourceVersion") != s.version {
		return proxy.Decision{}
	}
	return proxy.Decision{Until: s.armed.ended}
}

// presentVersion returns the version that all resources of a server have now.
func presentVersion(ctx context.Context, admin *proxy.Upstream) (string, error) {
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	found, err := admin.Get(ctx, "/api/v1/namespaces", url.Values{"limit": {"1"}}, &list)
	if err != nil {
		return "", err
	}
	if !found || list.Metadata.ResourceVersion == "" {
		return "", errors.New("the API server returns no version of its namespaces")
	}
	return list.Metadata.ResourceVersion, nil
}
