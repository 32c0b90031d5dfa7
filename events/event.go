package events

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

// severity is the type of an event. The API has no types but Normal and Warning.
type severity string

const (
	normal  severity = "Normal"
	warning severity = "Warning"
)

// event is an Event of events.k8s.io/v1 with the fields that a Recorder writes. The type in
// k8s.io/api would make a program 50 KB larger.
type event struct {
	metav1.TypeMeta     `json:""`
	metav1.ObjectMeta   `json:"metadata"`
	EventTime           metav1.MicroTime `json:"eventTime"`
	Series              *eventSeries     `json:"series,omitempty"`
	ReportingController string           `json:"reportingController"`
	ReportingInstance   string           `json:"reportingInstance"`
	Action              string           `json:"action"`
	Reason              string           `json:"reason"`
	Regarding           reference        `json:"regarding"`
	Note                string           `json:"note,omitempty"`
	Type                severity         `json:"type"`
}

// eventSeries counts the occurrences of an event that occurred more than once.
type eventSeries struct {
	Count            int32            `json:"count"`
	LastObservedTime metav1.MicroTime `json:"lastObservedTime"`
}

// reference names the object that an event is about.
type reference struct {
	APIVersion      string    `json:"apiVersion,omitempty"`
	Kind            string    `json:"kind,omitempty"`
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// Definition returns the definition of the resource, which API servers have built in.
func (event) Definition() kube.Definition {
	return kube.Definition{Group: "events.k8s.io", Version: "v1", Kind: "Event", Foreign: true}
}

// referenceTo returns a reference to obj. It reports false if obj is nil or has no name.
func referenceTo(obj kube.Object) (reference, bool) {
	if v := reflect.ValueOf(obj); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return reference{}, false
	}
	r := reference{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
	if t, err := kube.TypeOfObject(obj); err == nil {
		r.APIVersion, r.Kind = t.Resource.GroupVersion().String(), t.Resource.Kind
	} else {
		r.APIVersion, r.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	}
	return r, r.Name != ""
}

// The limits of the API, in bytes.
const (
	maxReason   = 128
	maxAction   = 128
	maxNote     = 1024
	maxInstance = 128
)

// truncate returns the beginning of text, with at most limit bytes, in whole runes.
func truncate(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// newEventName returns a new name for an event about r. The name begins with the name of the
// object, or with its kind if an event may not have that name: the names of roles have fewer
// rules. The end is random, so that only an earlier attempt for this event can have taken the name.
func newEventName(r reference) string {
	suffix := fmt.Sprintf("%016x", rand.Uint64())
	base := r.Name
	if len(validation.IsDNS1123Subdomain(base)) > 0 {
		base = strings.ToLower(r.Kind)
	}
	if limit := validation.DNS1123SubdomainMaxLength - len(suffix) - 1; len(base) > limit {
		base = strings.TrimRight(base[:limit], ".-")
	}
	return base + "." + suffix
}
