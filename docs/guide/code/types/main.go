// Command types prints the CustomResourceDefinition of a type with defaults, limits and rules.
package main

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/admissionpolicy"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// DatabaseSpec is the desired state of a Database.
type DatabaseSpec struct {
	// The engine. It cannot be changed.
	Engine string `json:"engine" crd:"enum=postgres|mysql,rule='self == oldSelf',message='the engine cannot be changed',column"`
	// How many servers there are.
	Servers int32 `json:"servers,omitempty" crd:"minimum=1,maximum=9,default=1,column"`
	// When backups are made. Without it there are none.
	Backup *Backup `json:"backup,omitempty"`
	// The port of each server.
	Port Port `json:"port,omitempty" crd:"default=5432"`
	// What the servers need.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// The users, each with a name of its own.
	Users []User `json:"users,omitempty" crd:"listType=map,listMapKey=name,maxItems=100"`
	// The settings of the engine.
	Settings map[string]any `json:"settings,omitempty"`
}

// Backup is a plan for backups.
type Backup struct {
	// The hour of the day, in UTC.
	Hour int32 `json:"hour" crd:"minimum=0,maximum=23"`
	// How many backups are kept, and the first of them for how long.
	Keep int32 `json:"keep" crd:"minimum=1"`
	// How many of the kept backups are full.
	Full int32 `json:"full" crd:"minimum=1"`
}

// Rules returns the rules of a Backup.
func (Backup) Rules() []kube.Rule {
	return []kube.Rule{{Rule: "self.full <= self.keep", Message: "full is greater than keep"}}
}

// Port is a port without special rights.
type Port int32

// CRDTag returns the limits of a Port.
func (Port) CRDTag() string { return "minimum=1024,maximum=65535" }

// User is a user of the database.
type User struct {
	// The name of the user.
	Name string `json:"name" crd:"pattern='^[a-z][a-z0-9_]*$',maxLength=63"`
	// Whether the user may change the schema.
	Admin bool `json:"admin,omitempty"`
	// Where the password is.
	Password Password `json:"password"`
}

// Password is in one of two places.
type Password struct {
	// The name of a Secret.
	Secret string `json:"secret,omitempty"`
	// The path of a file in each server.
	File string `json:"file,omitempty"`
}

// CRDTag returns the rule for a Password.
func (Password) CRDTag() string { return "exactlyOneOf=secret|file" }

// Definition returns the definition of Databases.
func (DatabaseSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "example.com", Version: "v1", Kind: "Database", ShortNames: []string{"db"}, Source: source,
		OtherSources: kubernetesSources(),
		Tags: map[string]string{
			".spec.resources.claims":         "maxItems=4",
			".spec.resources.claims[*].name": "maxLength=63",
		},
	}
}

// kubernetesSources returns the files of k8s.io/api, if the environment names their folder.
func kubernetesSources() map[string]fs.FS {
	folder := os.Getenv("K8S_API")
	if folder == "" {
		return nil
	}
	return map[string]fs.FS{"k8s.io/api/core/v1": os.DirFS(folder + "/core/v1")}
}

// Database is a database server with its users.
type Database = kube.CustomResource[DatabaseSpec, kube.None]

func main() { operator.Main(controller.New(reconcile), limitServers()) }

// limitServers returns a policy about the namespaces in which a Database may have many servers.
func limitServers() operator.Part {
	databases := admissionv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"databases"}}
	return admissionpolicy.Validating(&admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "database-servers"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Rule: databases, Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: "object.spec.servers <= 3 || namespaceObject.metadata.?labels.?tier.orValue('') == 'gold'",
				Message:    "more than 3 servers need a namespace with the label tier=gold",
			}},
		},
	})
}

func reconcile(_ context.Context, d *Database, _ *kube.Client) (controller.Action, error) {
	if maxConnections(d.Spec.Settings) < 1 {
		return controller.Done(), controller.Terminal(errors.New("spec.settings.max_connections is less than 1"))
	}
	return controller.Done(), nil
}

// maxConnections returns the setting max_connections.
func maxConnections(settings map[string]any) float64 {
	switch n := settings["max_connections"].(type) {
	case int64:
		return float64(n)
	case float64: // such as 1e3
		return n
	}
	return 100
}
