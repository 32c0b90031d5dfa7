package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

const (
	group   = "bench.example.com"
	version = "v1"
)

// Store holds Shops in the order of an API server, as the events of a watch.
type Store struct {
	events [][]byte
	// positions has, for each Shop of the workload, its place in the order.
	positions []int
}

const (
	eventHead  = `{"type":"ADDED","object":`
	updateHead = `{"type":"MODIFIED","object":`
	eventTail  = "}\n"
)

// NewStore returns a store of the first n Shops of the workload.
func NewStore(n int) *Store {
	s := &Store{events: make([][]byte, n), positions: make([]int, n)}
	order := make([]int, n)
	keys := make([]string, n)
	for i := range n {
		shop := workload.NewShop(i)
		order[i], keys[i] = i, shop.Namespace+"/"+shop.Name
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	var encoding errgroup.Group
	encoding.SetLimit(runtime.GOMAXPROCS(0))
	for k, i := range order {
		s.positions[i] = k
		encoding.Go(func() error {
			s.events[k] = slices.Concat([]byte(eventHead), encode(i), []byte(eventTail))
			return nil
		})
	}
	_ = encoding.Wait() // there are no errors
	return s
}

// Len returns the number of objects.
func (s *Store) Len() int { return len(s.events) }

// event returns the k-th object as the event of its addition.
func (s *Store) event(k int) []byte { return s.events[k] }

// object returns the k-th object.
func (s *Store) object(k int) []byte {
	return s.events[k][len(eventHead) : len(s.events[k])-len(eventTail)]
}

// firstVersion is the resource version of the Shop 0.
const firstVersion = 10_000_000

// version returns the resource version of the whole store.
func (s *Store) version() int { return firstVersion + 2*len(s.events) }

// UpdateEvent returns the event of an update of the i-th Shop: another image and another annotation. The
// number makes the event differ from the events of other updates of the Shop. UpdateEvent also returns the
// resource version of the event, which is newer than every version of the store. Of two updates of one round,
// the one with the higher order has the newer version.
func (s *Store) UpdateEvent(i, number, order int) (event []byte, version int64) {
	shop := workload.NewShop(i)
	release, newVersion := fmt.Sprintf("%d.%d", number, i%10), s.version()+1+order
	contact := fmt.Sprintf(`"example.com/contact":%q`, shop.Annotations["example.com/contact"])
	object := strings.NewReplacer(
		`"generation":1`, `"generation":2`,
		fmt.Sprintf(`"resourceVersion":"%d"`, firstVersion+2*i), fmt.Sprintf(`"resourceVersion":"%d"`, newVersion),
		fmt.Sprintf(`"image":%q`, shop.Spec.Image), fmt.Sprintf(`"image":%q`, shop.Spec.Image+"-"+release),
		contact, fmt.Sprintf(`%s,"example.com/release":%q`, contact, release),
		`"f:example.com/contact":{}`, `"f:example.com/contact":{},"f:example.com/release":{}`,
	).Replace(string(s.object(s.positions[i])))
	return []byte(updateHead + object + eventTail), int64(newVersion)
}

// encode returns the i-th Shop as an API server writes it. Two field managers made the Shop: one applied the Shop, and
// the other one its status. What differs from Shop to Shop in a real cluster differs here too: uids and times.
func encode(i int) []byte {
	server := fakeserver.New()
	if err := workload.Create(context.Background(), server.Client(), i); err != nil {
		panic(err) // the server refuses no Shop
	}
	random := rand.New(rand.NewPCG(uint64(i), 11))
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(300*24*3600)) * time.Second)
	observed := created.Add(time.Duration(1+random.IntN(7*24*3600)) * time.Second)
	object := server.Objects("shops")[0]
	metadata := object["metadata"].(map[string]any)
	managers := metadata["managedFields"].([]any)
	conditions := object["status"].(map[string]any)["conditions"].([]any)
	metadata["creationTimestamp"], managers[0].(map[string]any)["time"] = created, created
	managers[1].(map[string]any)["time"], conditions[0].(map[string]any)["lastTransitionTime"] = observed, observed
	metadata["resourceVersion"], metadata["uid"] = fmt.Sprint(firstVersion+2*i), newUID(random)
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // maps, strings, numbers and times
	}
	// Unlike an API server, the server above records that the manager owns the map itself.
	return bytes.Replace(text, []byte(`"f:limits":{".":{},`), []byte(`"f:limits":{`), 1)
}

// newUID returns a random UUID of version 4.
func newUID(random *rand.Rand) string {
	high, low := random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		high>>32, high>>16&0xffff, high&0xfff, 0x8000|low>>48&0x3fff, low&0xffff_ffff_ffff)
}
