// Command languages is a program with two kinds of its own, for generators of clients in other languages. Its test makes
// clients by the tools that docs/guide/types.md names. It is a module of its own, because nobody who imports yare has
// these tools.
package main

import (
	"context"
	"embed"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

//go:embed main.go
var source embed.FS

// Mode is how a probe works.
type Mode string

// ProbeSpec has a field of each kind that the generators take.
type ProbeSpec struct {
	// A text, with "quotes", 'more quotes' and a \backslash.
	Text string `json:"text" crd:"minLength=1,maxLength=63,pattern='^[a-z]+$',column"`
	// A number of 64 bits.
	Big int64 `json:"big,omitempty" crd:"minimum=-9007199254740991,maximum=9007199254740991"`
	// A number with a default.
	Count int32 `json:"count,omitempty" crd:"minimum=1,maximum=9,default=3"`
	// A fraction.
	Ratio *float64 `json:"ratio,omitempty"`
	// A switch with a default.
	Paused bool `json:"paused,omitempty" crd:"default=false"`
	// A port, by its number or name.
	Port intstr.IntOrString `json:"port,omitzero"`
	// An amount.
	Memory *resource.Quantity `json:"memory,omitempty"`
	// A choice.
	Mode Mode `json:"mode,omitempty" crd:"enum=Slow|Fast,default=Slow"`
	// Several choices.
	Modes []Mode `json:"modes,omitempty" crd:"items.enum=Slow|Fast,listType=set"`
	// Anything.
	Any any `json:"any,omitempty"`
	// Free content.
	Settings map[string]any `json:"settings,omitempty"`
	// A text for each name.
	Labels map[string]string `json:"labels,omitempty"`
	// A list by name.
	Items []Item `json:"items,omitempty" crd:"listType=map,listMapKey=name,maxItems=9"`
	// A moment.
	At *metav1.Time `json:"at,omitempty"`
	// A moment with fractions.
	Exactly *metav1.MicroTime `json:"exactly,omitempty"`
	// A span of time.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Bytes.
	Data []byte `json:"data,omitempty"`
	// A text that can be null.
	Nothing *string `json:"nothing,omitempty" crd:"nullable"`
}

// Item is an item of a list.
type Item struct {
	// The name.
	Name string `json:"name"`
	// The size, with a default.
	Size int32 `json:"size,omitempty" crd:"default=1"`
}

// ProbeStatus is the observed state.
type ProbeStatus struct {
	// What is known.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// How far the program is.
	Phase string `json:"phase,omitempty" crd:"enum=New|Done"`
}

// Definition returns the definition of Probes.
func (ProbeSpec) Definition() kube.Definition {
	return kube.Definition{Group: "languages.yare.dev", Version: "v1", Kind: "Probe", Source: source}
}

// Probe is what all tools can read and write.
type Probe = kube.CustomResource[ProbeSpec, ProbeStatus]

// OddSpec has names and kinds of fields that a server takes, that crd has no warning about, and that not each tool takes.
type OddSpec struct {
	True     string               `json:"true,omitempty"`
	Class    string               `json:"class,omitempty"`
	Type     string               `json:"type,omitempty"`
	Default  string               `json:"default,omitempty"`
	Ref      string               `json:"ref,omitempty"`
	Self     string               `json:"self,omitempty"`
	PodCIDRs []string             `json:"podCIDRs,omitempty"`
	Snake    string               `json:"snake_case,omitempty"`
	Camel    string               `json:"snakeCase,omitempty"`
	Dashed   string               `json:"dashed-name,omitempty"`
	Letters  string               `json:"x-y-z,omitempty"`
	Versions string               `json:"versions,omitempty" crd:"enum=v1|v1beta1|1|1.5"`
	Number   int32                `json:"number,omitempty" crd:"enum=1|2|3"`
	Null     *intstr.IntOrString  `json:"null,omitempty" crd:"nullable"`
	Raw      runtime.RawExtension `json:"raw,omitzero"`
	Embedded runtime.RawExtension `json:"embedded,omitzero" crd:"embeddedResource"`
	Spec     *Item                `json:"spec,omitempty"`
	Lists    [][]string           `json:"lists,omitempty"`
	Maps     map[string]Item      `json:"maps,omitempty"`
}

// Definition returns the definition of Odds.
func (OddSpec) Definition() kube.Definition {
	return kube.Definition{Group: "languages.yare.dev", Version: "v1", Kind: "Odd", ClusterScoped: true, Source: source}
}

// Odd is what a server takes, and not each tool.
type Odd = kube.CustomResource[OddSpec, kube.None]

func main() {
	idle := func(ctx context.Context, _ *kube.Client) error { <-ctx.Done(); return ctx.Err() }
	operator.Main(operator.Watcher[Probe](idle), operator.Watcher[Odd](idle))
}
