package cache

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/kube/wire"
)

func TestSelectsWithin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		list, stream string
		want         bool
	}{
		{"", "", true},
		{"app=web", "", true},
		{"", "app=web", false},
		{"app=web", "app=web", true},
		{"app==web", "app=web", true},
		{"app=web,tier=front", "app=web", true},
		{"app=web", "app=web,tier=front", false},
		{"app=web,tier=front", "tier=front,app=web", true},
		{"app=web", "app", true},
		{"app", "app=web", false},
		{"app=web", "app in (web,db)", true},
		{"app in (web,db)", "app in (db,web,cache)", true},
		{"app in (web,db)", "app=web", false},
		{"app in (web,db),app!=db", "app=web", true},
		{"app=web", "app!=db", true},
		{"app!=db", "app!=db", true},
		{"app!=db", "app", false}, // an object without the label
		{"app!=db,app", "app", true},
		{"!app", "app!=db", true},
		{"!app", "app", false},
		{"app notin (web,db)", "app!=db", true},
		{"app!=db", "app notin (web,db)", false},
		{"app=", "app", true},
		{"app", "app=", false},
		{"size>5", "size>3", true},
		{"size>3", "size>5", false},
		{"size>5", "size", true},
		{"size", "size>5", false},
		{"size=7", "size>5", true},
		{"size in (7,x)", "size>5", false},
		{"size>5,size<7", "size=6", false}, // 06 is another label
		{"size>5,size<8", "size>4,size<9", true},
		{"tier=front", "app=web", false},
		{"a=b=c", "app", false},
	} {
		r := wire.Stream{LabelSelector: test.list}.Request(wire.VerbList)
		if got := SelectsWithin(r, wire.Stream{LabelSelector: test.stream}); got != test.want {
			t.Errorf("the list %q and the stream %q: %t", test.list, test.stream, got)
		}
	}
	for _, test := range []struct {
		list, stream string
		want         bool
	}{
		{"", "spec.nodeName=a", false},
		{"spec.nodeName=a", "spec.nodeName=a", true},
		{"spec.nodeName==a", "spec.nodeName=a", true},
		{"spec.nodeName=a", "spec.nodeName=b", false},
		{"spec.nodeName=a", "spec.nodeName!=b", false}, // not certain is enough
		{"metadata.name=x,spec.nodeName=a", "spec.nodeName=a", true},
		{"spec.nodeName=a", "metadata.name=x,spec.nodeName=a", false},
		{"spec.nodeName", "spec.nodeName=a", false},
	} {
		r := wire.Stream{FieldSelector: test.list}.Request(wire.VerbList)
		if got := SelectsWithin(r, wire.Stream{FieldSelector: test.stream}); got != test.want {
			t.Errorf("the list %q and the stream %q: %t", test.list, test.stream, got)
		}
	}
	if SelectsWithin(wire.Stream{}.Request(wire.VerbList), wire.Stream{ShardSelector: "shardRange(object.metadata.uid)"}) {
		t.Error("a list of all objects is within a shard")
	}
}

// No labels that the list selects are missing in the stream if SelectsWithin says so, and there are such labels otherwise.
func TestSelectsWithinIsExact(t *testing.T) {
	t.Parallel()
	requirements := []string{"a", "!a", "a=1", "a!=1", "a in (1,2,x)", "a notin (1,2,x)", "a>1", "a<3", "a>0", "a="}
	sets := []labels.Set{nil}
	for _, value := range []string{"", "-1", "0", "1", "01", "2", "02", "3", "4", "x", "y"} {
		sets = append(sets, labels.Set{"a": value})
	}
	random := rand.New(rand.NewPCG(1, 1))
	expression := func() string {
		text := ""
		for i := range 1 + random.IntN(3) {
			if i > 0 {
				text += ","
			}
			text += requirements[random.IntN(len(requirements))]
		}
		return text
	}
	for range 5000 {
		list, stream := expression(), expression()
		narrow, wide := mustParse(list), mustParse(stream)
		missing := ""
		for _, l := range sets {
			if narrow.Matches(l) && !wide.Matches(l) {
				missing = "{" + l.String() + "}"
			}
		}
		r := wire.Stream{LabelSelector: list}.Request(wire.VerbList)
		if got := SelectsWithin(r, wire.Stream{LabelSelector: stream}); got != (missing == "") {
			t.Fatalf("the list %q and the stream %q: %t, and the stream lacks %q", list, stream, got, missing)
		}
	}
}
