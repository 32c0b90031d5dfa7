package events

import (
	"reflect"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

// Type says who should look at an event.
type Type string

const (
	// Normal is an event that is as it should be.
	Normal Type = "Normal"
	// Warning is one that somebody should look at.
	Warning Type = "Warning"
)

// event is an Event of events.k8s.io/v1, as far as it is written. With the type of k8s.io/api
// in its place a program would be 50 KB larger.
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
	Type                Type             `json:"type"`
}

// eventSeries is how often an event has occurred, if it was more than once.
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

// Definition says which resource an event is.
func (event) Definition() kube.Definition {
	return kube.Definition{Group: "events.k8s.io", Version: "v1", Kind: "Event"}
}

// referenceTo is nothing, and not ok, for what is no object.
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

// namespace is where an event about r goes.
func (r reference) namespace() string {
	if r.Namespace == "" {
		return metav1.NamespaceDefault // as the API server demands
	}
	return r.Namespace
}

// The limits of the API, in bytes.
const (
	maxReason   = 128
	maxAction   = 128
	maxNote     = 1024
	maxInstance = 128
)

// cut is text with at most limit bytes, in whole runes.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// eventName is the name of an event about r, which begins with that of the object. Not all
// names of objects are good enough for an event, such as those of roles.
func eventName(r reference, suffix string) string {
	base := r.Name
	if len(validation.IsDNS1123Subdomain(base)) > 0 {
		base = strings.ToLower(r.Kind)
	}
	if most := validation.DNS1123SubdomainMaxLength - len(suffix) - 1; len(base) > most {
		base = strings.TrimRight(base[:most], ".-")
	}
	return base + "." + suffix
}
