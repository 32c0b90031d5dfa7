package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/lab/bench/internal/workload"
)

const (
	group   = "bench.example.com"
	version = "v1"
)

// Store holds Shops in the order of an API server, as the events of a watch.
type Store struct {
	events [][]byte
}

const (
	eventHead  = `{"type":"ADDED","object":`
	updateHead = `{"type":"MODIFIED","object":`
	eventTail  = "}\n"
)

// NewStore returns a store of the first n Shops of the workload.
func NewStore(n int) *Store {
	shops := make([]*workload.Shop, n)
	index := make(map[*workload.Shop]int, n)
	for i := range shops {
		shops[i] = workload.NewShop(i)
		index[shops[i]] = i
	}
	slices.SortFunc(shops, func(a, b *workload.Shop) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	s := &Store{events: make([][]byte, n)}
	var working sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		working.Go(func() {
			for k := w; k < n; k += workers {
				event := append([]byte(eventHead), encode(shops[k], index[shops[k]], identityOf(index[shops[k]]))...)
				s.events[k] = append(event, eventTail...)
			}
		})
	}
	working.Wait()
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
func (s *Store) UpdateEvent(i, number, order int) (event []byte, version uint64) {
	shop := workload.NewShop(i)
	release := fmt.Sprintf("%d.%d", number, i%10)
	shop.Annotations["example.com/release"] = release
	shop.Spec.Image += "-" + release
	version = uint64(s.version() + 1 + order)
	event = append([]byte(updateHead), encode(shop, i, identity{version: version, generation: 2})...)
	return append(event, eventTail...), version
}

// identity is what differs between two versions of a Shop in the metadata that a server sets.
type identity struct {
	version    uint64
	generation int
}

// identityOf returns the identity of the first version of the i-th Shop.
func identityOf(i int) identity { return identity{version: uint64(firstVersion + 2*i), generation: 1} }

// encode returns the i-th Shop as an API server writes it: keys in order, with the metadata that
// a server adds. Two field managers made the Shop: one applied the Shop, and the other one its status.
func encode(shop *workload.Shop, i int, id identity) []byte {
	random := rand.New(rand.NewPCG(uint64(i), 11))
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(300*24*3600)) * time.Second)
	observed := created.Add(time.Duration(1+random.IntN(7*24*3600)) * time.Second)
	for k := range shop.Status.Conditions {
		shop.Status.Conditions[k].LastTransitionTime.Time = observed
	}
	spec, status := toMap(shop.Spec), toMap(shop.Status)
	labels, annotations := toMap(shop.Labels), toMap(shop.Annotations)
	manager := func(name, subresource string, at time.Time, fields map[string]any) map[string]any {
		entry := map[string]any{
			"apiVersion": group + "/" + version, "fieldsType": "FieldsV1", "fieldsV1": fields,
			"manager": name, "operation": "Apply", "time": at.Format(time.RFC3339),
		}
		if subresource != "" {
			entry["subresource"] = subresource
		}
		return entry
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": group + "/" + version, "kind": "Shop",
		"metadata": map[string]any{
			"annotations": annotations, "labels": labels,
			"creationTimestamp": created.Format(time.RFC3339), "generation": id.generation,
			"managedFields": []any{
				manager("gitops", "", created, map[string]any{
					"f:metadata": map[string]any{"f:annotations": fieldsOf(annotations), "f:labels": fieldsOf(labels)},
					"f:spec":     fieldsOf(spec),
				}),
				manager("shop-operator", "status", observed, map[string]any{"f:status": fieldsOf(status)}),
			},
			"name": shop.Name, "namespace": shop.Namespace,
			"resourceVersion": fmt.Sprint(id.version),
			"uid":             newUID(random),
		},
		"spec": spec, "status": status,
	})
	if err != nil {
		panic(err) // maps, strings and numbers
	}
	return text
}

// toMap returns v as the maps, slices, strings and numbers of its JSON.
func toMap(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		panic(err)
	}
	return m
}

// fieldsOf returns the fields of v in the form of FieldsV1. The lists of Shops are lists of maps
// with a key: a name or a type.
func fieldsOf(v any) map[string]any {
	fields := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			fields["f:"+key] = fieldsOf(value)
		}
	case []any:
		for _, each := range v {
			item := each.(map[string]any)
			key := "name"
			if item[key] == nil {
				key = "type"
			}
			of := fieldsOf(item)
			of["."] = map[string]any{}
			fields[fmt.Sprintf("k:{%q:%q}", key, item[key])] = of
		}
	}
	return fields
}

// newUID returns a random UUID of version 4.
func newUID(random *rand.Rand) string {
	high, low := random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		high>>32, high>>16&0xffff, high&0xfff, 0x8000|low>>48&0x3fff, low&0xffff_ffff_ffff)
}
