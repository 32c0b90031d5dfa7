package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// showPastLocked changes the query of a read with resourceVersion=0, so that the server answers with the state
// at the beginning of the step, if a fault shows the past.
func (p *Proxy) showPastLocked(e *exchange, query url.Values) {
	a := p.staleLocked()
	if a == nil || e.parsed.Subresource != "" {
		return
	}
	version := query.Get("resourceVersion")
	switch {
	case e.parsed.Verb == kube.VerbWatch && e.isStreamingList:
		e.refusesStreaming = version == "0"
	case e.parsed.Verb == kube.VerbWatch && version == p.stepVersion:
		e.past = a
	case e.parsed.Verb == kube.VerbList && version == "0" && query.Get("continue") == "",
		e.parsed.Verb == kube.VerbGet && version == "0":
		e.pastGet = e.parsed.Verb == kube.VerbGet
		query.Set("resourceVersion", p.stepVersion)
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		a.triggerLocked()
	}
}

// changeGetToList makes a get a list that selects the object, because only a list can ask for an exact
// version.
func changeGetToList(r *http.Request, name string) {
	r.URL.Path, r.URL.RawPath = path.Dir(r.URL.Path), ""
	query := r.URL.Query()
	query.Set("fieldSelector", "metadata.name="+name)
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"))
}

// changeListToGet changes the answer to a list that changeGetToList has made to the answer to the get.
func changeListToGet(response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return err
	}
	var list struct {
		APIVersion string                       `json:"apiVersion"`
		Kind       string                       `json:"kind"`
		Items      []map[string]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("the list in place of a get: %w", err)
	}
	if len(list.Items) == 0 {
		replaceAnswer(response, newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "the object is not found"))
		return nil
	}
	object := list.Items[0]
	if object["kind"] == nil { // the items of built-in kinds lack both
		object["apiVersion"], _ = kube.Marshal(list.APIVersion)
		object["kind"], _ = kube.Marshal(strings.TrimSuffix(list.Kind, "List"))
	}
	if body, err = kube.Marshal(object); err != nil {
		return err
	}
	setBody(response, body)
	return nil
}
