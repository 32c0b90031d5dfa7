package crdpublishing

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// object is a CustomResourceDefinition with the fields that this package reads and writes. The zero value stands for
// one that does not exist.
type object struct {
	Metadata metadata `json:"metadata"`
	Spec     spec     `json:"spec,omitzero"`
	// Status is only read.
	Status status `json:"status,omitzero"`
}

type metadata struct {
	Name            string    `json:"name,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	Generation      int64     `json:"generation,omitempty"` // it is only read
	// Annotations and ManagedFields are only read.
	Annotations   annotations `json:"annotations,omitzero"`
	ManagedFields []manager   `json:"managedFields,omitempty"`
}

// annotations are the annotations that this package reads.
type annotations struct {
	Successor string `json:"conversion.yare.dev/successor"`
}

// manager is an entry of managedFields.
type manager struct {
	Manager string `json:"manager"`
}

type spec struct {
	Conversion *conversion `json:"conversion,omitempty"`
	// Versions are only read.
	Versions []version `json:"versions,omitempty"`
}

type version struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	// Schema is nil in the last known state of a definition, because it takes much memory.
	Schema *struct {
		OpenAPIV3Schema *crd.Schema `json:"openAPIV3Schema"`
	} `json:"schema,omitempty"`
}

type status struct {
	StoredVersions []string `json:"storedVersions,omitempty"`
}

// conversion is the field spec.conversion.
type conversion struct {
	// Strategy is None or Webhook.
	Strategy string             `json:"strategy"`
	Webhook  *webhookConversion `json:"webhook,omitempty"`
}

type webhookConversion struct {
	ClientConfig             *configuration.ClientConfig `json:"clientConfig"`
	ConversionReviewVersions []string                    `json:"conversionReviewVersions"`
}

// newConversion returns the conversion of a CustomResourceDefinition by the program of c, with a bundle.
func newConversion(c Config, name string, bundle []byte) *conversion {
	path := c.Paths[name]
	client := &configuration.ClientConfig{CABundle: bundle}
	if c.Target.URL != "" {
		client.URL = c.Target.URL + path
	} else {
		port := c.Target.ServicePort
		if port == 0 {
			port = 443
		}
		client.Service = &configuration.ServiceReference{
			Namespace: c.Target.ServiceNamespace, Name: c.Target.ServiceName, Path: path, Port: port,
		}
	}
	return &conversion{Strategy: "Webhook", Webhook: &webhookConversion{client, []string{"v1"}}}
}

// isEqual reports whether two conversions are the same, and both call a program.
func (c *conversion) isEqual(other *conversion) bool {
	if c.clientConfig() == nil || other.clientConfig() == nil {
		return false
	}
	a, b := c.clientConfig(), other.clientConfig()
	isSameService := a.Service == b.Service || a.Service != nil && b.Service != nil && *a.Service == *b.Service
	return isSameService && a.URL == b.URL && bytes.Equal(a.CABundle, b.CABundle) &&
		slices.Equal(c.Webhook.ConversionReviewVersions, other.Webhook.ConversionReviewVersions)
}

// clientConfig returns where the API server calls, or nil if it calls nobody.
func (c *conversion) clientConfig() *configuration.ClientConfig {
	if c == nil || c.Strategy != "Webhook" || c.Webhook == nil {
		return nil
	}
	return c.Webhook.ClientConfig
}

// hasOldVersionInUse reports whether a version is served or stored beside the storage version. Then objects may have to
// be converted for users. Once the old versions are neither served nor stored, only managedFields in an old version
// need a conversion, at each write of their objects. The command migrate moves these entries, and then gives up the
// conversion. See [convertedDefinition.needsConversion] for a CustomResourceDefinition with one version.
func (o *object) hasOldVersionInUse() bool {
	for _, v := range o.Spec.Versions {
		if !v.Storage && (v.Served || slices.Contains(o.Status.StoredVersions, v.Name)) {
			return true
		}
	}
	return false
}

// storageVersion returns the name of the version in which objects are stored, or "".
func (o *object) storageVersion() string {
	for _, v := range o.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// preferredVersion returns the name of the served version with the highest priority, or "".
func (o *object) preferredVersion() string {
	preferred := ""
	for _, v := range o.Spec.Versions {
		if v.Served && (preferred == "" || apiversion.CompareKubeAwareVersionStrings(v.Name, preferred) > 0) {
			preferred = v.Name
		}
	}
	return preferred
}

// isManagedBy reports whether a field manager owns fields of the CustomResourceDefinition.
func (o *object) isManagedBy(name string) bool {
	return slices.ContainsFunc(o.Metadata.ManagedFields, func(m manager) bool { return m.Manager == name })
}

// exists reports whether the CustomResourceDefinition exists.
func (o *object) exists() bool { return o.Metadata.UID != "" }

// service returns the Service that the conversion belongs to, or nil.
func (o *object) service() *configuration.ServiceReference {
	if c := o.Spec.Conversion.clientConfig(); c != nil {
		return c.Service
	}
	return nil
}

// isOfOtherService reports whether the conversion belongs to a Service other than that of t.
func (o *object) isOfOtherService(t configuration.Target) bool {
	s := o.service()
	return s != nil && (t.URL != "" || s.Namespace != t.ServiceNamespace || s.Name != t.ServiceName)
}

// isHandedTo reports whether another installation has handed the conversion over to the Service of t.
func (o *object) isHandedTo(t configuration.Target) bool {
	return t.URL == "" && o.Metadata.Annotations.Successor == t.ServiceNamespace+"/"+t.ServiceName
}

// bundle returns the published bundle.
func (o *object) bundle() []byte {
	if c := o.Spec.Conversion.clientConfig(); c != nil {
		return c.CABundle
	}
	return nil
}
