// Command children keeps a set of ConfigMaps for each Shelf, and a password that is generated once.
package main

import (
	"context"
	"crypto/rand"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/controller/children"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// Shelf has a ConfigMap for each of its books.
type Shelf = kube.CustomResource[ShelfSpec, ShelfStatus]

// ShelfSpec is the spec of a Shelf.
type ShelfSpec struct {
	// Books are the names of the ConfigMaps.
	Books []string `json:"books,omitempty"`
}

// ShelfStatus is the status of a Shelf.
type ShelfStatus struct {
	// Secret has the password.
	Secret string `json:"secret,omitempty"`
}

// Definition returns the kind of a Shelf.
func (ShelfSpec) Definition() kube.Definition {
	return kube.Definition{Group: "shelf.example.com", Version: "v1", Kind: "Shelf", Plural: "shelves"}
}

func main() {
	operator.Main(controller.New(reconcile,
		controller.Owns[corev1.ConfigMap](controller.WriteVerbs(wire.VerbCreate, wire.VerbPatch, wire.VerbDelete)),
		controller.Reads[corev1.Secret](wire.VerbGet), controller.Writes[corev1.Secret](wire.VerbCreate),
	))
}

// reconcile applies what a Shelf should have.
func reconcile(ctx context.Context, shelf *Shelf, c *kube.Client) (controller.Action, error) {
	secret, err := children.Generated(ctx, c, shelf, &corev1.Secret{ObjectMeta: named(shelf, shelf.Name)}, shelf.Status.Secret,
		map[string]func() string{"password": rand.Text}) // of crypto/rand
	if err != nil {
		return controller.Done(), err
	}
	shelf.Status.Secret = secret.Name
	if err := c.ApplyStatus(ctx, shelf); err != nil {
		return controller.Done(), err
	}
	var books []kube.Object
	for _, name := range shelf.Spec.Books {
		books = append(books, &corev1.ConfigMap{ObjectMeta: named(shelf, shelf.Name+"-"+name)})
	}
	set := children.Set{Name: "books", Prune: true, AllowEmpty: true}
	_, err = set.Apply(ctx, c, shelf, books...)
	return controller.Done(), err
}

// named returns the metadata of a child.
func named(shelf *Shelf, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: shelf.Namespace, Name: name}
}
