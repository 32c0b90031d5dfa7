package configpublishing

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// entry is an entry of a configuration as the server has it, with the fields that this package does not know. An entry
// is not changed after its creation.
type entry struct {
	fields configuration.Entry
	// members are the members of the entry in JSON. fields has those that it knows.
	members map[string]jsontext.Value
}

func (e *entry) UnmarshalJSON(content []byte) error {
	*e = entry{}
	if err := kube.Unmarshal(content, &e.fields); err != nil {
		return err
	}
	return kube.Unmarshal(content, &e.members)
}

func (e entry) MarshalJSON() ([]byte, error) { return kube.Marshal(e.members) }

// newEntry returns an entry with these fields.
func newEntry(fields *configuration.Entry) (entry, error) {
	var e entry
	content, err := kube.Marshal(fields)
	if err == nil {
		err = e.UnmarshalJSON(content)
	}
	if err != nil {
		return entry{}, fmt.Errorf("encode the entry %s of a webhook configuration: %w", fields.Name, err)
	}
	return e, nil
}

// bundle returns the published bundle.
func (e entry) bundle() []byte { return e.fields.ClientConfig.CABundle }

// withBundle returns e with another bundle.
func (e entry) withBundle(bundle []byte) (entry, error) {
	var members map[string]jsontext.Value
	if err := kube.Unmarshal(e.members["clientConfig"], &members); err != nil {
		return entry{}, fmt.Errorf("read the clientConfig of the entry %s: %w", e.fields.Name, err)
	}
	var err error
	if members["caBundle"], err = kube.Marshal(bundle); err != nil {
		return entry{}, err
	}
	changed := entry{e.fields, maps.Clone(e.members)}
	changed.fields.ClientConfig.CABundle = bundle
	changed.members["clientConfig"], err = kube.Marshal(members)
	return changed, err
}

// withFields returns e with other fields. The members that [configuration.Entry] lacks stay.
func (e entry) withFields(fields *configuration.Entry) (entry, error) {
	changed, err := newEntry(fields)
	if err != nil {
		return entry{}, err
	}
	for name, value := range e.members {
		// The other members that the fields leave out have no value in a new entry either.
		if _, isSet := changed.members[name]; !isSet && name != "namespaceSelector" && name != "objectSelector" {
			changed.members[name] = value
		}
	}
	return changed, nil
}

// hasFields reports whether e has these fields. A selector that selects everything is the default of the server.
func (e entry) hasFields(fields *configuration.Entry) bool {
	current, wanted := e.fields, *fields
	for _, each := range []*configuration.Entry{&current, &wanted} {
		if each.NamespaceSelector == nil {
			each.NamespaceSelector = &metav1.LabelSelector{}
		}
		if each.ObjectSelector == nil {
			each.ObjectSelector = &metav1.LabelSelector{}
		}
	}
	return reflect.DeepEqual(current, wanted)
}

// withSettingsOfOthers returns fields with what others have set in e: expressions of selectors that exclude objects, and the
// reinvocation policy.
func (e entry) withSettingsOfOthers(fields *configuration.Entry) configuration.Entry {
	kept := *fields
	namespaces, objects := e.fields.RecordedSelectors()
	kept.NamespaceSelector = mergeSelector(e.fields.NamespaceSelector, fields.NamespaceSelector, namespaces)
	kept.ObjectSelector = mergeSelector(e.fields.ObjectSelector, fields.ObjectSelector, objects)
	if fields.ReinvocationPolicy != "" && e.fields.ReinvocationPolicy != "" {
		kept.ReinvocationPolicy = e.fields.ReinvocationPolicy
	}
	return kept
}

// isFor reports whether the API server calls the program at t for e: at the same Service, or at a URL with the same
// host.
func (e entry) isFor(t configuration.Target) bool {
	if t.URL != "" {
		return e.fields.ClientConfig.URL != "" && hostOf(e.fields.ClientConfig.URL) == hostOf(t.URL)
	}
	s := e.fields.ClientConfig.Service
	return s != nil && s.Namespace == t.ServiceNamespace && s.Name == t.ServiceName
}

// path returns the path that API servers call.
func (e entry) path() string {
	if s := e.fields.ClientConfig.Service; s != nil {
		return s.Path
	}
	u, err := url.Parse(e.fields.ClientConfig.URL)
	if err != nil {
		return ""
	}
	return u.Path
}

// hostOf returns the host of a URL with its port. A text that is no URL has none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}
