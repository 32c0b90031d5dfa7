// Command member prints a welcome for each new member of a team, and a farewell.
package main

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/watch"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// MemberSpec describes a member.
type MemberSpec struct {
	// MemberOf is the team, if there is one.
	MemberOf string `json:"memberOf,omitempty"`
}

func (MemberSpec) Definition() kube.Definition {
	return kube.Definition{Group: "helloworld.apimeister.com", Version: "v1", Kind: "Member", Source: source}
}

type Member = kube.CustomResource[MemberSpec, kube.None] // the whole resource

func main() { operator.Main(operator.Watcher[Member](run)) }

func run(ctx context.Context, c *kube.Client) error {
	fmt.Print("starting hello world operator\nsubscribing events of type members.helloworld.apimeister.com/v1\n")
	for event, err := range watch.Events(ctx, kube.Everywhere[Member](c)) {
		switch e := event.(type) {
		case watch.Added[Member]: // without a team only the first half of the sentence
			fmt.Println("welcome " + e.Object.Name + strings.TrimSuffix(" to the team "+e.Object.Spec.MemberOf, " to the team "))
		case watch.Deleted[Member]:
			fmt.Println("sad to see you go", e.Object.Name)
		case nil:
			fmt.Println("error:", err)
		}
	}
	return nil
}
