package crd_test

import (
	"fmt"
	"io"
	"os"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// TeamSpec describes a team.
type TeamSpec struct {
	Lead string `json:"lead" crd:"minLength=1,column"`
	Size int32  `json:"size,omitempty" crd:"minimum=1,default=1"`
}

// Definition returns the definition of teams.
func (TeamSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Team"}
}

// Team is the whole resource.
type Team = kube.CustomResource[TeamSpec, kube.None]

// The CustomResourceDefinition of a Go type, as kubectl apply takes it. An operator prints it by its command crd.
func ExampleOf() {
	definition, err := crd.Of[Team]()
	if err != nil {
		panic(err)
	}
	if err := crd.WriteYAML(os.Stdout, definition); err != nil {
		panic(err)
	}
	// Output:
	// ---
	// apiVersion: apiextensions.k8s.io/v1
	// kind: CustomResourceDefinition
	// metadata:
	//   name: teams.example.com
	// spec:
	//   group: example.com
	//   names:
	//     kind: Team
	//     listKind: TeamList
	//     plural: teams
	//     singular: team
	//   scope: Namespaced
	//   versions:
	//   - additionalPrinterColumns:
	//     - jsonPath: .spec.lead
	//       name: Lead
	//       type: string
	//     - jsonPath: .metadata.creationTimestamp
	//       name: Age
	//       type: date
	//     name: v1
	//     schema:
	//       openAPIV3Schema:
	//         properties:
	//           apiVersion:
	//             description: The group and version that this object is written in, such
	//               as example.com/v1.
	//             type: string
	//           kind:
	//             description: What this object is. It cannot be changed.
	//             type: string
	//           metadata:
	//             type: object
	//           spec:
	//             properties:
	//               lead:
	//                 minLength: 1
	//                 type: string
	//               size:
	//                 default: 1
	//                 format: int32
	//                 minimum: 1
	//                 type: integer
	//             required:
	//             - lead
	//             type: object
	//         required:
	//         - spec
	//         type: object
	//     served: true
	//     storage: true
}

type typoSpec struct {
	Size int32 `json:"size" crd:"minimum=small"`
}

func (typoSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Typo"}
}

// The error of a mistake in a tag names its place and what to write.
func ExampleOf_mistake() {
	_, err := crd.Of[kube.CustomResource[typoSpec, kube.None]]()
	fmt.Println(err)
	// Output:
	// crd_test.typoSpec.Size: the tag crd:"minimum=small": minimum=small: the value must be a number, as in minimum=3
}

// A program that changes definitions before it prints them, such as a tool that leaves descriptions out to save space.
// The types are those of apiextensions.k8s.io/v1, without the module.
func ExampleFrom() {
	team, err := kube.TypeOf[Team]()
	if err != nil {
		panic(err)
	}
	definitions, err := crd.From(team)
	if err != nil {
		panic(err)
	}
	var trim func(*crd.Schema)
	trim = func(s *crd.Schema) {
		s.Description = ""
		for _, property := range s.Properties {
			trim(property)
		}
	}
	var definition *crd.CustomResourceDefinition = definitions[0]
	definition.Metadata = crd.Metadata{Name: definition.Metadata.Name, Labels: map[string]string{"team": "platform"}}
	var spec *crd.Spec = &definition.Spec
	spec.Names = crd.Names{
		Plural: spec.Names.Plural, Singular: spec.Names.Singular, Kind: spec.Names.Kind, ListKind: spec.Names.ListKind, ShortNames: []string{"tm"},
	}
	for i := range spec.Versions {
		var version *crd.Version = &spec.Versions[i]
		version.Schema = crd.VersionSchema{OpenAPIV3Schema: version.Schema.OpenAPIV3Schema}
		trim(version.Schema.OpenAPIV3Schema)
		version.Schema.OpenAPIV3Schema.Validations = []crd.Validation{{Rule: "self.spec.size < 10", Message: "a team has at most 9 people"}}
		version.Columns = append(version.Columns, crd.Column{Name: "Size", Type: "integer", JSONPath: ".spec.size"})
		version.SelectableFields = []crd.SelectableField{{JSONPath: ".spec.lead"}}
		version.Subresources = &crd.Subresources{Status: new(struct{}), Scale: &crd.Scale{SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size"}}
	}
	fmt.Println(definition.Metadata.Name, len(spec.Versions[0].Columns), spec.Scope)
	if err := crd.WriteJSON(io.Discard, definitions...); err != nil { // or to a file of a chart
		panic(err)
	}
	// Output: teams.example.com 3 Namespaced
}

// MatchSpec describes what a pattern matches. A generator of clients makes a name of each value of an enum.
type MatchSpec struct {
	Operator string `json:"operator" crd:"enum=is|="`
}

// Definition returns the definition of matches.
func (MatchSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Match"}
}

// A test of an operator can hold its types free of what generators of clients lose. The command crd prints these warnings.
func ExampleWarnings() {
	match, err := kube.TypeOf[kube.CustomResource[MatchSpec, kube.None]]()
	if err != nil {
		panic(err)
	}
	warnings, err := crd.Warnings(match)
	if err != nil {
		panic(err)
	}
	for _, warning := range warnings {
		fmt.Println(warning)
	}
	// Output:
	// crd_test.MatchSpec.Operator: generators of clients lose or rename the value "=" of the enum: give it a name of letters; to accept the loss, tag the field crd:"acceptLoss"
}
