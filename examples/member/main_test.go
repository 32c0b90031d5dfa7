package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yare-go/yare/examples/internal/operatortest"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

var started = []string{
	"starting hello world operator",
	"subscribing events of type members.helloworld.apimeister.com/v1",
}

func manifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: helloworld.apimeister.com/v1\nkind: Member\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

func member() operatortest.Watcher {
	return operatortest.Watcher{
		Group: "helloworld.apimeister.com", Plural: "members",
		Manifest: func(name string, changed bool) string {
			if changed {
				return manifest(name, "{memberOf: red}")
			}
			return manifest(name, "{memberOf: blue}")
		},
		Sample: "patrick", SampleLine: "welcome patrick to the team blue",
		Started:  started,
		Added:    func(name string) []string { return []string{"welcome " + name + " to the team blue"} },
		Modified: func(string) []string { return nil },
		Deleted:  func(name string) []string { return []string{"sad to see you go " + name} },
		IsError:  func(line string) bool { return strings.HasPrefix(line, "error: ") && len(line) > len("error: ") },
	}
}

func TestMember(t *testing.T) { member().Test(t) }

func TestPermissions(t *testing.T) {
	operatortest.SkipUnlessAllPermissions(t)
	member().TestPermissions(t)
}

// A member need not have a team.
func TestMemberWithoutTeam(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOfMember(t))
	namespace := cluster.Namespace(t)
	p := cluster.Run(t, yaretest.Build(t, "."), "--watch-namespace", namespace)
	cluster.Kubectl(t, manifest("patrick", "{}"), "apply", "--namespace", namespace, "-f", "-")
	p.WaitForLine(t, "welcome patrick")
}

func typeOfMember(t *testing.T) kube.Type {
	t.Helper()
	member, err := kube.TypeOf[Member]()
	if err != nil {
		t.Fatal(err)
	}
	return member
}
