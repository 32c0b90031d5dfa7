package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"github.com/yare-go/yare/operator/internal/clusterread"
)

// The labels of the objects. A CustomResourceDefinition and the roles of its users belong to all installations of the
// program, and have LabelName and LabelManagedBy. A Namespace has LabelInstance too. All other objects have all of the
// labels.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelNamespace is the namespace of the installation. An object outside of the namespace, such as
	// a ClusterRole, has the label too.
	LabelNamespace = "manifests.yare.dev/namespace"
	// LabelObject is a hash of the kind, the namespace and the name of the object. A selector of labels can leave out
	// objects by it.
	LabelObject = "manifests.yare.dev/object"

	// ManagedBy is the value of LabelManagedBy of what the command manifests prints.
	ManagedBy = "yare"
)

// Installation identifies the objects of one installation of a program by their labels.
type Installation struct {
	// Program is the name of the program.
	Program string
	// Name is the name of the objects.
	Name string
	// Namespace is where the program is installed.
	Namespace string
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy string
}

// ClusterName returns the name of the objects of an installation that stand outside of its namespace, such as
// webapp.team-a. A namespace has no dot, so no other installation has that name.
func ClusterName(name, namespace string) string { return name + "." + namespace }

// podLabels returns the labels of the Pods.
func (i Installation) podLabels() Object {
	return Object{LabelName: i.Program, LabelInstance: i.Name}
}

// RoleFinalizer is the finalizer of the Roles and the RoleBindings in watched namespaces while objects there have
// finalizers of the program. It is never printed.
const RoleFinalizer = "manifests.yare.dev/cleanups"

// Selector returns the label selector of all objects of the installation but its CustomResourceDefinitions
// and its Namespace.
func (i Installation) Selector() string {
	return LabelInstance + "=" + i.Name + "," + LabelNamespace + "=" + i.Namespace
}

// IsPrinted reports whether an object has the labels of an object that the command manifests has printed. A child of an
// object of the program can have LabelName with the name of the program too.
func IsPrinted(o *clusterread.Object) bool {
	labels := o.Metadata.Labels
	return labels[LabelNamespace] != "" || labels[LabelManagedBy] == ManagedBy
}

// CheckOwner returns an error if an object belongs to another installation. An object without the label LabelNamespace
// belongs to no installation, or to all of them.
func (i *Installation) CheckOwner(o *clusterread.Object) error {
	name, namespace := o.Metadata.Labels[LabelInstance], o.Metadata.Labels[LabelNamespace]
	if namespace == "" || namespace == i.Namespace && name == i.Name {
		return nil
	}
	return fmt.Errorf("%s belongs to the installation %s in the namespace %s: remove that installation first, or give this one another --name-prefix or --namespace", o, name, namespace)
}

// WebhookSecretName returns the name of the Secret with the CAs of the webhooks of an installation of this name.
func WebhookSecretName(name string) string { return name + "-webhooks" }

// Labels returns the labels of an object outside of the namespace of the installation.
func (i Installation) Labels() map[string]string {
	return map[string]string{
		LabelName: i.Program, LabelManagedBy: i.ManagedBy, LabelInstance: i.Name, LabelNamespace: i.Namespace,
	}
}

// AddLabels adds the labels of the installation to objects. It changes no label that an object has.
func (i Installation) AddLabels(objects []Object) {
	for _, object := range objects {
		labels := Object{LabelName: i.Program, LabelManagedBy: i.ManagedBy}
		switch {
		case Kind(object) == "CustomResourceDefinition", isUserRole(object, objects):
		case Kind(object) == "Namespace":
			labels[LabelInstance] = i.Name
		default:
			labels[LabelInstance], labels[LabelNamespace] = i.Name, i.Namespace
		}
		addLabels(object, labels)
	}
}

// addLabels adds labels to an object. It changes no label that the object has.
func addLabels(object, labels Object) {
	metadata := ObjectAt(object, "metadata")
	maps.Copy(labels, ObjectAt(metadata, "labels"))
	metadata["labels"] = labels
}

// AddObjectHashes adds LabelObject to the objects of the installation, which have the other labels. It returns
// pruneCommand, the command line that deletes all other objects of the installation. The command leaves out the objects
// by what they are called, and not by whether they were applied: it never deletes an object whose apply was refused. It
// leaves out what Helm has installed, which has another LabelManagedBy. A CustomResourceDefinition, the roles of its
// users and a Namespace are no objects of the installation.
func (i Installation) AddObjectHashes(objects []Object) (pruneCommand string) {
	var hashes []string
	// The configurations come first, so that nobody calls a program that is deleted after them.
	kinds := []string{
		"validatingwebhookconfiguration", "mutatingwebhookconfiguration", "networkpolicy", "poddisruptionbudget",
		"clusterrolebinding", "clusterrole", "rolebinding", "role", "service", "serviceaccount", "deployment",
	}
	for _, object := range objects {
		if _, ok := ObjectAt(object, "metadata", "labels")[LabelNamespace]; !ok {
			continue
		}
		version, _ := object["apiVersion"].(string)
		hash := objectHash(object, version)
		addLabels(object, Object{LabelObject: hash})
		hashes = append(hashes, hash)
		kinds = appendKind(kinds, version, Kind(object))
	}
	return fmt.Sprintf("kubectl delete --all-namespaces -l '%s,%s=%s,%s notin (%s)' %s",
		i.Selector(), LabelManagedBy, ManagedBy, LabelObject, strings.Join(hashes, ","), strings.Join(kinds, ","))
}

// objectHash returns a hash of what an object is called, in any version of its group.
func objectHash(object Object, apiVersion string) string {
	group, _, isGroup := strings.Cut(apiVersion, "/")
	if !isGroup {
		group = ""
	}
	namespace, _ := ObjectAt(object, "metadata")["namespace"].(string)
	digest := sha256.Sum256([]byte(strings.Join([]string{group, Kind(object), namespace, Name(object)}, "/")))
	return hex.EncodeToString(digest[:5])
}

// appendKind appends the name of a kind for kubectl, such as certificate.v1.cert-manager.io, unless
// kinds has it.
func appendKind(kinds []string, apiVersion, kind string) []string {
	name := strings.ToLower(kind)
	for _, k := range kinds {
		if k == name || strings.HasPrefix(k, name+".") {
			return kinds
		}
	}
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		name += "." + version + "." + group
	}
	return append(kinds, name)
}

// SuccessorAnnotation is the key of an annotation of a CustomResourceDefinition. The value names the Service that takes
// the conversion over, such as shop/webapp. The command uninstall of another installation sets it. The program of the
// Service then writes its Service and its bundle at once: a Service without its bundle would make each call fail.
const SuccessorAnnotation = "conversion.yare.dev/successor"

// WebhookPort is the port of the Service that API servers call.
const WebhookPort = 443
