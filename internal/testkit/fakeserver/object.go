package fakeserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

type objectID struct{ plural, namespace, name string }

func (id objectID) compare(other objectID) int {
	return cmp.Or(cmp.Compare(id.plural, other.plural), cmp.Compare(id.namespace, other.namespace),
		cmp.Compare(id.name, other.name))
}

func idOf(r *wire.Request) objectID { return objectID{r.Resource.Plural, r.Namespace, r.Name} }

// object is one version of an object. It never changes.
type object struct {
	id      objectID
	version int
	content map[string]any
	// text is what the server sends for the object. metadata is what the server sends for requests of
	// metadata only. It is nil before the first such request.
	text, metadata []byte
}

// newObject returns content as a version of an object. It keeps content.
func newObject(id objectID, version int, content map[string]any) *object {
	metadataOf(content)["resourceVersion"] = strconv.Itoa(version)
	return &object{id: id, version: version, content: content, text: encode(content)}
}

func (o *object) bytes(representation wire.Representation) []byte {
	if representation != wire.MetadataOnly {
		return o.text
	}
	if o.metadata == nil {
		o.metadata = encode(map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.content["metadata"],
		})
	}
	return o.metadata
}

func answer(o *object, r *wire.Request) *wire.Response {
	return &wire.Response{Code: http.StatusOK, Body: o.bytes(r.Representation)}
}

// Has and Get implement fields.Fields.

func (o *object) Has(path string) bool { return o.lookup(path) != nil }

func (o *object) Get(path string) string {
	if v := o.lookup(path); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

func (o *object) lookup(path string) any {
	var at any = o.content
	for step := range strings.SplitSeq(path, ".") {
		m, _ := at.(map[string]any)
		at = m[step]
	}
	return at
}

func (o *object) labels() labels.Set {
	all, _ := metadataOf(o.content)["labels"].(map[string]any)
	set := make(labels.Set, len(all))
	for k, v := range all {
		set[k], _ = v.(string)
	}
	return set
}

// selection identifies the objects of a list, a watch or a delete of a collection.
type selection struct {
	plural, namespace string
	labels            labels.Selector
	fields            fields.Selector
}

func selectionOf(r *wire.Request) (selection, error) {
	l, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil {
		return selection{}, badRequest(r, err.Error())
	}
	f, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return selection{}, badRequest(r, err.Error())
	}
	return selection{r.Resource.Plural, r.Namespace, l, f}, nil
}

func (s *selection) covers(id objectID) bool {
	return s.plural == id.plural && (s.namespace == "" || s.namespace == id.namespace)
}

func (s *selection) matches(o *object) bool {
	return o != nil && s.covers(o.id) && (s.labels.Empty() || s.labels.Matches(o.labels())) &&
		(s.fields.Empty() || s.fields.Matches(o))
}

// now returns the present time as the server writes it.
func now() string { return time.Now().UTC().Format(time.RFC3339) }

func isDryRun(r *wire.Request) bool { return r.Query.Get("dryRun") == metav1.DryRunAll }

func bodyOf(r *wire.Request) (map[string]any, error) {
	var content map[string]any
	if err := kube.Unmarshal(r.Body, &content); err != nil {
		return nil, badRequest(r, err.Error())
	}
	if _, ok := content["metadata"].(map[string]any); !ok && r.Verb != wire.VerbPatch {
		content["metadata"] = map[string]any{}
	}
	return content, nil
}

func metadataOf(content map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	return metadata
}

func textOf(m map[string]any, name string) string {
	text, _ := m[name].(string)
	return text
}

func listOf(m map[string]any, name string) []any {
	list, _ := m[name].([]any)
	return list
}

func clone[T any](v T) T { return cloneAny(v).(T) }

func cloneAny(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, each := range v {
			m[k] = cloneAny(each)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, each := range v {
			l[i] = cloneAny(each)
		}
		return l
	}
	return v
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// decoded decodes an object that the server itself encoded.
func decoded(text []byte) map[string]any {
	var v map[string]any
	if err := kube.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return v
}

// patched returns the live object after the JSON patch or the merge patch of r, by the library of API servers. A JSON
// patch that fails is a 422 without details, as a real server answers.
func patched(r *wire.Request, live *object) (map[string]any, error) {
	if r.ContentType != wire.ContentJSONPatch {
		after, err := jsonpatch.MergePatch(live.text, r.Body)
		if err != nil {
			return nil, badRequest(r, err.Error())
		}
		return decoded(after), nil
	}
	patch, err := jsonpatch.DecodePatch(r.Body)
	if err != nil {
		return nil, badRequest(r, err.Error())
	}
	after, err := patch.Apply(live.text)
	if err != nil {
		e := refusalOf(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			"the server rejected our request due to an error in our request: "+err.Error())
		e.Answer.Details = &metav1.StatusDetails{}
		return nil, e
	}
	return decoded(after), nil
}
