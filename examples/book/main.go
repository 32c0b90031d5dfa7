// Command book watches books, and prints which are added and deleted.
package main

import (
	"context"
	"embed"
	"fmt"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/watch"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// BookSpec describes a book.
type BookSpec struct {
	// Title is the title of the book.
	Title string `json:"title"`
	// Authors are those who wrote it.
	Authors []string `json:"authors,omitempty"`
}

func (BookSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.technosophos.com", Version: "v1", Kind: "Book", Source: source}
}

type Book = kube.CustomResource[BookSpec, kube.None] // the whole resource

func main() { operator.Main(operator.Watcher[Book](run)) }

func run(ctx context.Context, c *kube.Client) error {
	for event := range watch.Events(ctx, kube.Everywhere[Book](c)) {
		switch e := event.(type) {
		case watch.Added[Book]:
			fmt.Printf("Added a book %s with title '%s'\n", e.Object.Name, e.Object.Spec.Title)
		case watch.Deleted[Book]:
			fmt.Printf("Deleted a book %s\n", e.Object.Name)
		case watch.Modified[Book], nil: // nil stands for an error
			fmt.Println("another event")
		}
	}
	return nil
}
