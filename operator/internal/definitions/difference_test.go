package definitions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// definitionText returns a definition in YAML, with a spec of this schema in its only version.
func definitionText(spec string) string {
	return fmt.Sprintf(`
kind: CustomResourceDefinition
metadata: {name: apps.example.com, labels: {team: a}}
spec:
  group: example.com
  names: {plural: apps, singular: app, kind: App, listKind: AppList, shortNames: [b, a]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size, description: how large}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema: {openAPIV3Schema: {type: object, required: [spec], properties: {metadata: {type: object}, spec: %s}}}
`, spec)
}

// lines returns the differences between two texts of YAML in the form "path: ours | theirs (note)".
func lines(t *testing.T, ours, theirs string, withDescriptions bool) (all []string) {
	t.Helper()
	a, err := readDocuments([]byte(ours))
	if err != nil {
		t.Fatal(err)
	}
	b, err := readDocuments([]byte(theirs))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Differences(a["apps.example.com"], b["apps.example.com"], withDescriptions) {
		line := d.Path + ": " + d.Ours + " | " + d.Theirs
		if d.Note != "" {
			line += " (" + d.Note + ")"
		}
		all = append(all, line)
	}
	return all
}

func TestDifferencesOfSchemas(t *testing.T) {
	t.Parallel()
	object := func(properties string) string { return "{type: object, properties: {" + properties + "}}" }
	for name, test := range map[string]struct {
		ours, theirs     string
		withDescriptions bool
		want             []string
	}{
		"order":    {ours: `{type: object, required: [a, b], properties: {a: {enum: [x, y]}, b: {}}}`, theirs: `{properties: {b: {}, a: {enum: [y, x]}}, required: [b, a], type: object}`},
		"defaults": {ours: object(`a: {type: array}, b: {type: object}, c: {type: string}`), theirs: object(`a: {type: array, x-kubernetes-list-type: atomic}, b: {type: object, x-kubernetes-map-type: granular}, c: {type: string, nullable: false, minLength: 0}`)},
		"default of a field": {
			ours: object(`a: {default: false}, b: {default: {x: 1}}, c: {default: ""}`), theirs: object(`a: {}, b: {default: {x: 2}}, c: {default: ""}`),
			want: []string{`v1 .spec.a default: false | `, `v1 .spec.b default: {"x":1} | {"x":2}`},
		},
		"bounds": {
			ours: object(`a: {minimum: 0, maximum: 9}`), theirs: object(`a: {maximum: 10, multipleOf: 2}`),
			want: []string{"v1 .spec.a maximum: 9 | 10", "v1 .spec.a minimum: 0 | ", "v1 .spec.a multipleOf:  | 2"},
		},
		"required with a default": {ours: object(`a: {default: x}`), theirs: `{type: object, required: [a], properties: {a: {default: x}}}`},
		"required": {
			ours: object(`a: {}`), theirs: `{type: object, required: [a], properties: {a: {}}}`,
			want: []string{`v1 .spec required:  | ["a"]`},
		},
		"fields": {
			ours: object(`a: {type: string}, b: {type: object}`), theirs: object(`c: {x-kubernetes-int-or-string: true}, b: {type: object, properties: {x: {}, z: {}}}`),
			want: []string{"v1 .spec.a: a field of the type string | ", "v1 .spec.b fields:  | x, z", "v1 .spec.c:  | a field of the type integer or string"},
		},
		"elements": {
			ours:   object(`a: {type: array, items: {type: string}}, b: {additionalProperties: {type: object, properties: {x: {type: string}}}}`),
			theirs: object(`a: {type: array, items: {type: integer}}, b: {additionalProperties: {type: object, properties: {x: {type: boolean}}}}`),
			want:   []string{`v1 .spec.a[*] type: "string" | "integer"`, `v1 .spec.b[*].x type: "string" | "boolean"`},
		},
		"bounds of a type and a field": {
			ours:   object(`a: {minLength: 2, maxLength: 63, pattern: x}, b: {pattern: x}`),
			theirs: object(`a: {allOf: [{minLength: 1, maxLength: 63, pattern: x}, {minLength: 2, maxLength: 253}]}, b: {pattern: x, allOf: [{pattern: z}]}`),
			want:   []string{`v1 .spec.b allOf:  | [{"pattern":"z"}]`},
		},
		"rules": {
			ours:   object(`a: {x-kubernetes-validations: [{rule: r, message: m}, {rule: s}]}`),
			theirs: object(`a: {x-kubernetes-validations: [{rule: s}, {rule: r, message: o}, {rule: "t\n + 1", reason: FieldValueInvalid}]}`),
			want:   []string{`v1 .spec.a rule 'r': {"message":"m"} | {"message":"o"}`, `v1 .spec.a rule 't + 1':  | {"reason":"FieldValueInvalid"}`},
		},
		"unions of earlier versions of controller-gen": {
			ours:   object(`a: {x-kubernetes-validations: [{rule: "(has(self.a)?1:0)+(has(self.b)?1:0) == 1"}, {rule: "has(self.a)||has(self.b)"}]}`),
			theirs: object(`a: {x-kubernetes-validations: [{rule: "[has(self.a),has(self.b)].filter(x,x==true).size() == 1"}, {rule: "[has(self.a), has(self.b)].filter(x, x == true).size() >= 1"}]}`),
		},
		"descriptions":      {ours: object(`a: {description: x}`), theirs: object(`a: {description: z}`)},
		"with descriptions": {ours: object(`a: {description: x}`), theirs: object(`a: {description: z}`), withDescriptions: true, want: []string{`v1 .spec.a description: "x" | "z"`}},
		"what controller-gen loses": {
			ours: object(`a: {type: integer, format: int64, minimum: 0, maximum: 4294967295}, b: {type: integer, format: int64, minimum: 0}, c: {type: integer, format: int32, minimum: -128, maximum: 127},
				d: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], minimum: -2147483648, maximum: 2147483647}, metadata: {type: object, properties: {labels: {}}}`),
			theirs: object(`a: {type: integer, format: int32}, b: {type: integer, format: int64}, c: {type: integer}, d: {anyOf: [{type: string}, {type: integer}], x-kubernetes-int-or-string: true}, metadata: {type: object}`),
			want: []string{
				`v1 .spec.a format: "int64" | "int32" (controller-gen gives a uint32 the format of an int32, so that servers refuse values from 2147483648 on)`,
				"v1 .spec.a maximum: 4294967295 |  (controller-gen leaves out the range of the Go type)",
				"v1 .spec.a minimum: 0 |  (controller-gen leaves out the range of the Go type)",
				"v1 .spec.b minimum: 0 |  (controller-gen leaves out the range of an unsigned Go type)",
				`v1 .spec.c format: "int32" |  (controller-gen leaves out the range of the Go type)`,
				"v1 .spec.c maximum: 127 |  (controller-gen leaves out the range of the Go type)",
				"v1 .spec.c minimum: -128 |  (controller-gen leaves out the range of the Go type)",
				"v1 .spec.d maximum: 2147483647 |  (controller-gen leaves out that the Go type has an int32)",
				"v1 .spec.d minimum: -2147483648 |  (controller-gen leaves out that the Go type has an int32)",
				"v1 .spec.metadata fields: labels |  (controller-gen has them only with generateEmbeddedObjectMeta=true, and servers drop them without)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, lines(t, definitionText(test.ours), definitionText(test.theirs), test.withDescriptions)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What is around the schema is compared too, apart from what a server or another tool adds.
func TestDifferencesOfDefinitions(t *testing.T) {
	t.Parallel()
	ours := definitionText("{type: object}")
	for name, test := range map[string]struct{ old, changed, want string }{
		"required metadata":  {"required: [spec]", "required: [spec, metadata]", ""},
		"required spec":      {"required: [spec], ", "", `v1 required: ["spec"] | `},
		"wide column":        {"type: integer, jsonPath", "type: integer, priority: 10, jsonPath", "v1.additionalPrinterColumns.Size.priority:  | 1"},
		"scope":              {"scope: Namespaced", "scope: Cluster", `scope: "Namespaced" | "Cluster"`},
		"short names":        {"[b, a]", "[a, c]", `names.shortNames: ["a","b"] | ["a","c"]`},
		"order of names":     {"[b, a]", "[a, b]", ""},
		"default names":      {"singular: app, kind: App, listKind: AppList", "kind: App", ""},
		"status subresource": {"subresources: {status: {}}", "subresources: {}", "v1.subresources.status: {} | "},
		"scale":              {"{status: {}}", "{status: {}, scale: {specReplicasPath: .spec.n}}", `v1.subresources.scale.specReplicasPath:  | ".spec.n"`},
		"served":             {"served: true", "served: false", "v1.served: true | false"},
		"version":            {"name: v1", "name: v2", "v1: the version | \nv2:  | the version"},
		"column":             {"type: integer", "type: number", `v1.additionalPrinterColumns.Size.type: "integer" | "number"`},
		"column description": {"how large", "how big", ""},
		"age":                {"    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}\n", "", ""},
		"label":              {"{team: a}", "{team: b}", `metadata.labels.team: "a" | "b"`},
		"labels of tools":    {"{team: a}", "{team: a, app.kubernetes.io/name: x}, annotations: {controller-gen.kubebuilder.io/version: v1}", ""},
		"what servers add":   {"scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: aGk=}}}", ""},
		"status":             {"kind: CustomResourceDefinition", "kind: CustomResourceDefinition\nstatus: {storedVersions: [v1]}", ""},
	} {
		if !strings.Contains(ours, test.old) {
			t.Errorf("%s: nothing to replace", name)
		}
		got := strings.Join(lines(t, ours, strings.Replace(ours, test.old, test.changed, 1), false), "\n")
		if got != test.want {
			t.Errorf("%s: the differences are\n%s\nnot\n%s", name, got, test.want)
		}
	}
}
