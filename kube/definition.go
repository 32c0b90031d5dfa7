package kube

import (
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube/internal/plural"
	"github.com/yare-go/yare/kube/wire"
)

// Definition describes one version of one resource: the part of its CustomResourceDefinition
// that the fields of the Go type do not show. Several versions of a kind are several types,
// and each type has a Definition. Package crd merges the Definitions.
type Definition struct {
	// Group, Version and Kind name the resource, such as example.com, v1, WebApp.
	Group, Version, Kind string

	// Plural is the resource's name in URLs. The default is what controller-gen makes of Kind: webapps of
	// WebApp, policies of Policy, redis of Redis. An API server cannot rename a kind, so a kind that is in
	// clusters under another plural needs that plural here.
	Plural string

	// ShortNames are what kubectl accepts instead of Plural.
	ShortNames []string

	// Categories are groups of resources that kubectl get takes, such as "all".
	Categories []string

	// ClusterScoped is true for a resource outside of namespaces.
	ClusterScoped bool

	// Foreign is true if the kind belongs to another project, such as a Certificate of
	// cert-manager. The program then does not print a CustomResourceDefinition: the definition
	// of that project has more versions, fields and rules than this Go type, and would be
	// overwritten. Default: the program defines the kind.
	Foreign bool

	// Storage marks the version in which objects are stored. Default: the highest version that is
	// served, by the priority of Kubernetes versions (v2, v1, v1beta1, …).
	Storage bool

	// NotServed is true for a version that the server does not serve. It may be an old version in which
	// objects are still stored. Default: every version is served.
	NotServed bool

	// Deprecated is the warning that users of this version get. Default: none.
	Deprecated string

	// Labels and Annotations are those of the CustomResourceDefinition itself, for tools such as
	// cert-manager (cert-manager.io/inject-ca-from) and Helm (helm.sh/resource-policy). The
	// CustomResourceDefinition has the labels and annotations of all versions of the kind.
	Labels, Annotations map[string]string

	// Columns are printed by kubectl get, in this order, after the columns that fields declare
	// with the tag crd:"column". Age comes last by itself.
	Columns []Column

	// Rules are CEL rules on the whole object.
	Rules []Rule

	// Tags are crd tags by the paths of fields, as JSON paths from the object's root:
	// ".spec.issuerRef.name". They are for fields of types of other modules, which cannot have
	// the tag. [*] stands for the elements of a list or the values of a map, as in
	// ".spec.ports[*].name". A dot within a name is written \.
	Tags map[string]string

	// Scale, if it is set, gives the resource a scale subresource.
	Scale *ScalePaths

	// Source holds the Go files, embedded, in which the types are declared: their doc comments become the
	// descriptions. A program cannot see its own comments, so without Source there are no descriptions.
	// Because the text is part of the binary, the result is the same wherever the program was built and
	// wherever it runs.
	//
	//	//go:embed main.go
	//	var source embed.FS
	Source fs.FS

	// OtherSources holds the Go files of other packages that declare types of the resource, by the
	// import paths of the packages. Each of these packages embeds its files and exports them.
	OtherSources map[string]fs.FS
}

// Defined is the interface of types that name their own resource. Definition is called on the
// zero value, and must return the same value each time.
type Defined interface{ Definition() Definition }

// Tagged is the interface of types with a crd tag for every value of the type: see package crd. CRDTag is
// called on the zero value, and must return the same tag each time.
type Tagged interface{ CRDTag() string }

// DefinedObjectOf is the constraint that *T is an Object and defines itself, as a custom resource does.
type DefinedObjectOf[T any] interface {
	ObjectOf[T]
	Defined
}

// Column is a column of kubectl get.
type Column struct {
	// Name is the head of the column.
	Name string
	// JSONPath finds the value, as a JSON path from the object's root: ".spec.image".
	JSONPath string
	// Type is one of string, integer, number, boolean and date.
	Type string
	// Description is shown by tools that describe columns.
	Description string
	// Wide restricts the column to kubectl get -o wide.
	Wide bool
}

// Rule is a validation rule in CEL, on self, with the message for objects that break it.
type Rule struct {
	// Rule is the expression, such as "self.min <= self.max".
	Rule string
	// Message is the error that the user gets. Default: the server quotes the rule.
	Message string
}

// ScalePaths names the values of the scale subresource, as JSON paths under .spec and .status.
type ScalePaths struct {
	// SpecReplicas is the path of the wanted number. Default: .spec.replicas.
	SpecReplicas string
	// StatusReplicas is the path of the observed number. Default: .status.replicas.
	StatusReplicas string
	// Selector is the path of the label selector of the pods, a string that a horizontal
	// autoscaler needs. Default: none.
	Selector string
}

// Resource returns the resource that d names, or an error if d is not valid.
func (d Definition) Resource() (wire.Resource, error) {
	r := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind},
		Plural:           d.Plural,
		ClusterScoped:    d.ClusterScoped,
	}
	if r.Plural == "" {
		r.Plural = plural.Of(d.Kind)
	}
	for _, check := range []struct {
		name, value string
		validate    func(string) []string
	}{
		{"Group", d.Group, validation.IsDNS1123Subdomain},
		{"Version", d.Version, validation.IsDNS1035Label},
		{"Kind", strings.ToLower(d.Kind), validation.IsDNS1035Label},
		{"Plural", r.Plural, validation.IsDNS1035Label},
	} {
		if check.value == "" {
			return wire.Resource{}, fmt.Errorf("the Definition has no %s", check.name)
		}
		if isPlainName(check.value, check.name == "Group") {
			continue
		}
		if problems := check.validate(check.value); len(problems) > 0 {
			value := check.value
			if check.name == "Kind" {
				value = d.Kind
			}
			return wire.Resource{}, fmt.Errorf("the Definition's %s %q is not valid: %s", check.name, value, problems[0])
		}
	}
	if first := d.Kind[:1]; first != strings.ToUpper(first) {
		return wire.Resource{}, fmt.Errorf("the Definition's Kind %q must begin with a capital letter", d.Kind)
	}
	return r, nil
}

// isPlainName reports whether name is a short label of lower-case letters and digits, or several of them with dots in
// between. Such a name is valid, which the regular expressions of Kubernetes would find out in a hundred times as long.
func isPlainName(name string, mayHaveDots bool) bool {
	isFirst := true
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9' && !isFirst:
			isFirst = false
		case c == '.' && mayHaveDots && !isFirst:
			isFirst = true
		default:
			return false
		}
	}
	return !isFirst && len(name) <= validation.DNS1035LabelMaxLength
}
