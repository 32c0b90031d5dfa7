package crd_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// warningsOf returns the warnings about a resource whose spec has a field of type T.
func warningsOf[T any]() ([]string, error) {
	t, err := kube.TypeOf[kube.CustomResource[holder[T], kube.None]]()
	if err != nil {
		return nil, err
	}
	return crd.Warnings(t, t)
}

// openStruct has fields, and others are kept.
type openStruct struct {
	A string `json:"a,omitempty"`
}

func (openStruct) CRDTag() string { return "preserveUnknownFields" }

// Each warning names the field and what is lost, and a tag at the field accepts the loss.
func TestWarnings(t *testing.T) {
	t.Parallel()
	type inner struct {
		Mode string `json:"mode,omitempty" crd:"enum=|on"`
	}
	for name, test := range map[string]struct {
		of   func() ([]string, error)
		want []string // parts of the warnings, one each
	}{
		"nothing": {warningsOf[struct {
			Mode  string               `json:"mode,omitempty" crd:"enum=v1|v1beta1|1|Ä"`
			Count int                  `json:"count,omitempty" crd:"enum=1|2"`
			Ref   string               `json:"ref,omitempty"`
			Any   map[string]any       `json:"any,omitempty"`
			Raw   runtime.RawExtension `json:"raw,omitzero"`
			Pod   corev1.PodSpec       `json:"pod,omitzero"`
		}], nil},
		"empty": {warningsOf[struct {
			Mode string `json:"mode,omitempty" crd:"enum=|on"`
		}], []string{`.V.Mode: generators of clients lose or rename the value "" of the enum: leave "" out`}},
		"symbols": {warningsOf[struct {
			Operators []string `json:"operators,omitempty" crd:"items.enum=>=|<=|is"`
		}], []string{`.V.Operators: .spec.v.operators[*]: generators of clients lose or rename the value ">=" of the enum`, `"<="`}},
		"case": {warningsOf[struct {
			Method string `json:"method,omitempty" crd:"enum=GET|POST|get"`
		}], []string{`.V.Method: the values "GET" and "get" of the enum differ in case only`}},
		"$ref": {warningsOf[struct {
			Ref string `json:"$ref,omitempty"`
		}], []string{`.V.Ref: generators of clients refuse or misread the name $ref`}},
		"open struct":  {warningsOf[openStruct], []string{`crd_test.holder[github.com/yare-go/yare/crd_test.openStruct].V: preserveUnknownFields on a struct with fields`}},
		"within a map": {warningsOf[map[string]inner], []string{`crd_test.inner.Mode: generators`}},
		"accepted": {warningsOf[struct {
			Mode string            `json:"mode,omitempty" crd:"enum=|on,acceptLoss"`
			Open openStruct        `json:"open,omitzero" crd:"acceptLoss"`
			Each map[string]string `json:"each,omitempty" crd:"values.enum=+|-,acceptLoss"`
			Ref  string            `json:"$ref,omitempty" crd:"acceptLoss"`
		}], nil},
		"accepted around an own field": {warningsOf[struct {
			Inner inner `json:"inner,omitzero" crd:"acceptLoss"`
		}], []string{`crd_test.inner.Mode: generators`, `.V.Inner: the tag crd:"acceptLoss": acceptLoss: generators of clients lose nothing here`}},
	} {
		got, err := test.of()
		if err != nil || len(got) != len(test.want) {
			t.Errorf("%s: %v, %q, not %q", name, err, got, test.want)
			continue
		}
		for i, want := range test.want {
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("%s: the warning %q, not %q", name, got[i], want)
			}
		}
	}
}

type lossySpec struct {
	// The schedule, such as "*/5 * * * *".
	Schedule string `json:"schedule,omitempty"`
	// A volume of Kubernetes.
	Volume corev1.Volume `json:"volume,omitzero"`
}

var lossySource = fstest.MapFS{"spec.go": {Data: []byte(`package crd_test

type lossySpec struct {
	// The schedule, such as "*/5 * * * *".
	Schedule string
	// A volume of Kubernetes.
	Volume corev1.Volume
}
`)}}

func (lossySpec) Definition() kube.Definition {
	return kube.Definition{Group: "lossy.example.com", Version: "v1", Kind: "Lossy", Source: lossySource}
}

// A warning has the file and the line of the field. A loss within a type of another module has those of the field around
// it, and either a tag there or a tag by path accepts it.
func TestWarningsNameTheField(t *testing.T) {
	t.Parallel()
	const schedule = `spec.go:5: crd_test.lossySpec.Schedule: the description contains "*/"`
	for name, test := range map[string]struct {
		tags map[string]string
		want []string
	}{
		"comment": {nil, []string{schedule}},
		"within a type of another module": {
			map[string]string{".spec.volume.name": "enum=|a"},
			[]string{schedule, `spec.go:7: crd_test.lossySpec.Volume: .spec.volume.name: generators of clients lose or rename the value ""`},
		},
		"accepted around it":    {map[string]string{".spec.volume.name": "enum=|a", ".spec.volume": "acceptLoss"}, []string{schedule}},
		"accepted by its path":  {map[string]string{".spec.volume.name": "enum=|a,acceptLoss", ".spec.schedule": "acceptLoss"}, nil},
		"accepted for nothing":  {map[string]string{".spec.volume.name": "acceptLoss"}, []string{schedule, `Tags[".spec.volume.name"]: "acceptLoss": acceptLoss: generators of clients lose nothing here`}},
		"accepted twice around": {map[string]string{".spec.volume.name": "enum=|a,acceptLoss", ".spec.volume": "acceptLoss", ".spec.schedule": "acceptLoss"}, []string{`Tags[".spec.volume"]: "acceptLoss": acceptLoss: generators of clients lose nothing here`}},
	} {
		of := typeOf[kube.CustomResource[lossySpec, kube.None]](t)
		definition := *of.Definition
		definition.Tags = test.tags
		of.Definition = &definition
		got, err := crd.Warnings(of)
		if err != nil || len(got) != len(test.want) {
			t.Errorf("%s: %v, %q, not %q", name, err, got, test.want)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: the warning %q, not %q", name, got[i], want)
			}
		}
	}
}
