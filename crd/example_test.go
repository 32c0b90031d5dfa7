package crd_test

import (
	"fmt"
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
