package main

import (
	"fmt"
	"testing"

	"github.com/yare-go/yare/examples/internal/operatortest"
)

func book() operatortest.Watcher {
	return operatortest.Watcher{
		Group: "example.technosophos.com", Plural: "books",
		Manifest: func(name string, changed bool) string {
			title := "A Title"
			if changed {
				title = "Another Title"
			}
			return fmt.Sprintf("apiVersion: example.technosophos.com/v1\nkind: Book\nmetadata: {name: %s}\nspec: {title: %s, authors: [Somebody]}\n", name, title)
		},
		Sample: "moby-dick", SampleLine: "Added a book moby-dick with title 'Moby Dick'",
		Added:    func(name string) []string { return []string{"Added a book " + name + " with title 'A Title'"} },
		Modified: func(string) []string { return []string{"another event"} },
		Deleted:  func(name string) []string { return []string{"Deleted a book " + name} },
		IsError:  func(line string) bool { return line == "another event" },
	}
}

func TestBook(t *testing.T) { book().Test(t) }

func TestPermissions(t *testing.T) {
	operatortest.SkipUnlessAllPermissions(t)
	book().TestPermissions(t)
}
