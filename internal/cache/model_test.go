package cache

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube"
)

// listener is a subscriber that checks each change against the changes before it.
type listener struct {
	t      *testing.T
	id     int
	store  func() *Store
	synced bool
	has    map[kube.Key]Record
	heard  int
	closed bool
}

func (l *listener) receive(e Change) {
	l.heard++
	if l.closed {
		l.t.Errorf("listener %d received %s %s after Close", l.id, e.Type, e.Record().Key())
	}
	if e.Type != Synced && e.Initial == l.synced {
		l.t.Errorf("listener %d: %s: Initial is %t, but synced is %t", l.id, e.Type, e.Initial, l.synced)
	}
	k := e.Record().Key()
	before, had := l.has[k]
	switch e.Type {
	case Added:
		if had {
			l.t.Errorf("listener %d: %s was added twice", l.id, k)
		}
	case Modified:
		if !had || before.UID != e.After.UID || before.ResourceVersion == e.After.ResourceVersion {
			l.t.Errorf("listener %d: modified from %v to %v", l.id, before, e.After)
		}
		fallthrough
	case Deleted:
		if !had || cmp.Diff(before, e.Before, compareRecords) != "" {
			l.t.Errorf("listener %d: %s: Before is not the last record: %s", l.id, e.Type, cmp.Diff(before, e.Before, compareRecords))
		}
		if o, err := readRecord(bytesOf(l.t, e.BeforeObject())); err != nil || o.ResourceVersion != e.Before.ResourceVersion {
			l.t.Errorf("listener %d: the old content is at %s, the record at %s", l.id, o.ResourceVersion, e.Before.ResourceVersion)
		}
	case Synced:
		if l.synced {
			l.t.Errorf("listener %d was synced twice", l.id)
		}
		l.synced = true
		return
	}
	// The store stands at the event.
	now, there := l.store().Get(k)
	if e.Type == Deleted {
		delete(l.has, k)
		if there {
			l.t.Errorf("listener %d: deleted %s is there", l.id, k)
		}
		return
	}
	l.has[k] = e.After
	if !there || now.ResourceVersion != e.After.ResourceVersion {
		l.t.Errorf("listener %d: %s at %s, but the store is at %s", l.id, k, e.After.ResourceVersion, now.ResourceVersion)
	}
	if got := bytesOf(l.t, e.AfterObject()); got != bytesOf(l.t, now) {
		l.t.Errorf("listener %d: %s: the event and the store differ", l.id, k)
	}
}

var compareRecords = cmp.Comparer(func(a, b Labels) bool { return a == b })

// TestModel changes objects at random while subscribers come and go, watches break, and
// lists have to be made again; all see the same, without gap or repetition.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runModel(t, samples.New(seed)) })
		})
	}
}

func runModel(t *testing.T, random samples.Random) {
	s := newServer(webApps.Resource)
	c := New(s)
	defer c.Close()
	keys := make([]kube.Key, 30)
	for i := range keys {
		keys[i] = kube.Key{Namespace: "ns" + fmt.Sprint(i%3), Name: fmt.Sprintf("o%d", i)}
	}
	uids := make(map[kube.Key]string)
	change := func() {
		k := keys[random.IntN(len(keys))]
		object := func(version int) string {
			if version%2 == 0 {
				return small(k, uids[k], fmt.Sprintf(`"v":"%d"`, version%5))(version)
			}
			return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","uid":%q},"spec":%q}`,
				k.Name, k.Namespace, version, uids[k], samples.New(uint64(version)).Letters(600))
		}
		if random.IntN(3) == 0 {
			s.remove(k, object)
			return
		}
		_, there := s.contents()[k]
		if !there {
			uids[k] = random.UID()
		}
		s.put(k, object)
	}
	type use struct {
		*listener
		*Subscription
	}
	var uses []use
	ids := 0
	for range 300 {
		switch random.IntN(12) {
		case 0:
			if len(uses) > 4 {
				break
			}
			ids++
			l := &listener{t: t, id: ids, has: make(map[kube.Key]Record)}
			var sub *Subscription
			ready := make(chan struct{})
			l.store = func() *Store { <-ready; return sub.Store() }
			var err error
			if sub, err = c.Open(t.Context(), webApps, l.receive); err != nil {
				t.Fatal(err)
			}
			close(ready)
			uses = append(uses, use{l, sub})
		case 1:
			if len(uses) > 0 {
				i := random.IntN(len(uses))
				uses[i].Close()
				uses[i].closed = true
				uses = append(uses[:i], uses[i+1:]...)
			}
		case 2:
			if random.IntN(2) == 0 {
				s.loseHistory()
			}
			s.stream.End()
		case 3:
			s.bookmark()
		default:
			change()
		}
		if random.IntN(4) > 0 {
			continue
		}
		synctest.Wait()
		want := 0
		if len(uses) > 0 {
			want = 1
		}
		if got := len(c.Stats()); got != want {
			t.Fatalf("%d streams, want %d", got, want)
		}
	}
	waitVirtually(t)
	for _, u := range uses {
		have := make(map[kube.Key]string)
		for o := range u.Store().All(Filter{}) {
			have[o.Key()] = bytesOf(t, o)
		}
		if diff := cmp.Diff(s.contents(), have); diff != "" {
			t.Errorf("the store differs from the server:\n%s", diff)
		}
		if len(u.has) != len(have) || !u.synced {
			t.Errorf("listener %d knows %d objects of %d, synced: %t", u.id, len(u.has), len(have), u.synced)
		}
		u.Close()
		u.closed = true
	}
	synctest.Wait()
	if n := s.stream.Watches(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}
