package noop_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	configMap  = `{"metadata":{"labels":{"app":"a"}},"data":{"k":"v","l":"w"}}`
	service    = `{"metadata":{"labels":{"app":"a"}},"spec":{"selector":{"app":"a"},"ports":[{"name":"http","port":80,"targetPort":8080},{"name":"dns","port":53,"protocol":"UDP"}]}}`
	gadgetBody = `{"metadata":{"annotations":{"x":"y"},"finalizers":["noop.example.com/f"]},"spec":{"number":9007199254740993,"empty":{},"anything":{"a":{"b":[1,{"c":null}]}},"tags":["x","y"],"plain":["p","q","p"],"ports":[{"port":80},{"port":53,"protocol":"UDP","name":"dns"}]}}`
)

// podTemplate has no controller that has a part in it.
const podTemplate = `{"metadata":{"labels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1000m","memory":"1024Mi"}}}]}}}`

// deployment returns a Deployment with a cpu quantity, and with more in its template.
func deployment(cpu, more string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":"a"}},"spec":{"replicas":0,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},`+
		`"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"}%s],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"requests":{"cpu":%q}}}]}}}}`, more, cpu)
}

// release takes the finalizers away that a test has made.
func (p *twins) release() {
	p.t.Cleanup(func() {
		for _, name := range []string{checked, always} {
			_, _ = kube.Dynamic(p.plain, p.resource, p.space).Patch(p.t.Context(), name, kube.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}}))
		}
	})
}

// Promise 8: what was applied and has not changed is not sent again; nor after a restart,
// when the server's managedFields are all there is to go by.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resource wire.Resource
		body     string
		// restarted is how many requests the first apply after a restart takes.
		restarted int
	}{
		"ConfigMap":                              {configMaps, configMap, 0},
		"Service, with a defaulted protocol":     {services, service, 0},
		"Deployment":                             {deployments, deployment("100m", ""), 0},
		"PodTemplate, its cpu written otherwise": {podTemplates, podTemplate, 1},
		"Gadget, with lists of all kinds":        {gadgets, gadgetBody, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTwins(t, c.resource)
			if c.resource == gadgets {
				p.release()
			}
			p.want("the first", 1, p.apply(c.body))
			p.want("the second", 0, p.apply(c.body))
			p.restart()
			p.want("the first after a restart", c.restarted, p.apply(c.body))
			p.want("the second after a restart", 0, p.apply(c.body))
		})
	}
}

// Promise 8: a field that is left out is removed, before and after a restart.
func TestFieldRemoved(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", restart), func(t *testing.T) {
			t.Parallel()
			p := newTwins(t, deployments)
			p.apply(deployment("100m", `,{"name":"B","value":"2"}`))
			if restart {
				p.restart()
			}
			p.want("without B", 1, p.apply(deployment("100m", "")))
			p.want("again", 0, p.apply(deployment("100m", "")))
		})
	}
}

// Promise 8: a change by others to our fields is undone, and a change to other fields costs at
// most one request.
func TestChangesByOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resource wire.Resource
		body     string
		change   func(*twins)
		// least and most requests that the next apply may take.
		least, most int
	}{
		"a label removed by hand": {configMaps, configMap, func(p *twins) { p.merge("hand", `{"metadata":{"labels":null}}`) }, 1, 1},
		"a value changed":         {configMaps, configMap, func(p *twins) { p.merge("hand", `{"data":{"k":"x"}}`) }, 1, 1},
		"a value added":           {configMaps, configMap, func(p *twins) { p.merge("hand", `{"data":{"z":"x"}}`) }, 0, 1},
		"scaled":                  {deployments, deployment("100m", ""), func(p *twins) { p.merge("kubectl", `{"spec":{"replicas":1}}`) }, 1, 1},
		"changed and changed back: the ownership is lost at an equal value": {
			configMaps, configMap, func(p *twins) {
				p.merge("hand", `{"data":{"k":"x"}}`)
				p.merge("hand", `{"data":{"k":"v"}}`)
			}, 1, 1},
		"taken with force at another value, and given back": {
			configMaps, configMap, func(p *twins) {
				p.force("thief", `{"data":{"k":"x"}}`)
				p.force("thief", `{"data":{"k":"v"}}`)
			}, 1, 1},
		"shared by another manager at the same value": {
			configMaps, configMap, func(p *twins) { p.force("friend", `{"data":{"k":"v"}}`) }, 0, 0},
		"our entry cleared": {
			configMaps, configMap, func(p *twins) { p.merge("hand", `{"metadata":{"managedFields":[{}]}}`) }, 1, 1},
		"a webhook-like default by another manager": {
			podTemplates, podTemplate, func(p *twins) {
				p.merge("webhook", `{"metadata":{"annotations":{"injected":"yes"}}}`)
			}, 0, 1},
		"status churn": {
			gadgets, gadgetBody, func(p *twins) {
				p.both(func(api kube.API[unstructured.Unstructured], name string) error {
					_, err := api.Status().Apply(p.t.Context(), p.object(name, `{"status":{"seen":4}}`), kube.FieldManager("other"))
					return err
				})
			}, 0, 0},
		"items in another order": {
			gadgets, gadgetBody, func(p *twins) { p.merge("hand", `{"spec":{"tags":["y","x"]}}`) }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTwins(t, c.resource)
			if c.resource == gadgets {
				p.release()
			}
			p.apply(c.body)
			c.change(p)
			if sent := p.apply(c.body); sent < c.least || sent > c.most {
				t.Errorf("%d requests, want %d to %d", sent, c.least, c.most)
			}
			p.want("at rest", 0, p.apply(c.body))
			p.restart()
			p.apply(c.body)
			p.want("at rest after a restart", 0, p.apply(c.body))
		})
	}
}

// Promise 8: what was applied empty, and was filled by somebody else as we want it now, is
// ours only once it is applied. In managedFields it looks like something that is owned as a
// whole.
func TestPlaceThatWasEmpty(t *testing.T) {
	t.Parallel()
	p := newTwins(t, configMaps)
	p.apply(`{"metadata":{},"data":{}}`)
	p.force("friend", `{"metadata":{},"data":{"k":"v"}}`)
	p.restart()
	p.apply(`{"metadata":{},"data":{"k":"v"}}`)
	p.want("again", 0, p.apply(`{"metadata":{},"data":{"k":"v"}}`))
}

// Promise 8, for statuses: the status entry counts, and changes of the rest do not.
func TestStatus(t *testing.T) {
	t.Parallel()
	p := newTwins(t, gadgets)
	p.release()
	const ready = `{"status":{"seen":1,"conditions":[{"type":"Ready","status":"True"}]}}`
	p.apply(gadgetBody)
	p.want("the first", 1, p.applyStatus(ready))
	p.want("the second", 0, p.applyStatus(ready))
	p.merge("hand", `{"metadata":{"labels":{"a":"b"}}}`)
	p.want("after another label", 0, p.applyStatus(ready))
	p.restart()
	p.want("after a restart", 0, p.applyStatus(ready))
	p.both(func(api kube.API[unstructured.Unstructured], name string) error {
		_, err := api.Status().Patch(p.t.Context(), name, kube.MergePatch(map[string]any{"status": map[string]any{"seen": 2}}), kube.FieldManager("hand"))
		return err
	})
	p.want("after a change", 1, p.applyStatus(ready))
	p.want("without a field", 1, p.applyStatus(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
	p.want("again", 0, p.applyStatus(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
}

// Promise 8: two managers of one object, and an object that is deleted or made anew.
func TestManagersAndObjects(t *testing.T) {
	t.Parallel()
	p := newTwins(t, configMaps)
	other := kube.FieldManager("second")
	p.want("ours", 1, p.apply(configMap))
	p.want("of another manager", 1, p.apply(configMap, other))
	p.want("ours again", 0, p.apply(configMap))
	p.want("the other's again", 0, p.apply(configMap, other))
	p.both(func(api kube.API[unstructured.Unstructured], name string) error {
		return api.Delete(p.t.Context(), name)
	})
	// Whether the store has seen that or not.
	if _, err := kube.Dynamic(p.cached, p.resource, p.space).Get(t.Context(), checked); err == nil {
		p.catchUp()
	}
	sent := 0
	for range 100 {
		if sent = p.apply(configMap); sent > 0 {
			break
		}
	}
	p.want("of an object made anew", 1, sent)
}

// Promise 8, at random: we and others change an object, with restarts in between. The object equals an
// object of which each apply is sent. At rest nothing is sent. YARE_EDITS_RUNS sets the number of
// seeds, and YARE_EDITS_SEED the first.
func TestRandomEdits(t *testing.T) {
	t.Parallel()
	runs := uint64(6)
	if n, err := strconv.ParseUint(os.Getenv("YARE_EDITS_RUNS"), 10, 64); err == nil {
		runs = n
	}
	first, _ := strconv.ParseUint(os.Getenv("YARE_EDITS_SEED"), 10, 64)
	for seed := first; seed < first+runs; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 3))
			p := newTwins(t, gadgets)
			p.toleratesNulls = true
			// The values are few, so that edits often meet.
			some := func() string {
				body := fmt.Sprintf(`"number":%d`, random.IntN(2))
				for _, part := range []string{
					fmt.Sprintf(`,"size":%q`, []string{"small", "large"}[random.IntN(2)]), `,"empty":{"inner":"x"}`,
					`,"tags":["x"]`, `,"tags":["y","x"]`, `,"plain":["p"]`, `,"plain":[]`, `,"ports":[{"port":80}]`, `,"ports":[{"port":80,"protocol":"UDP","name":"n"},{"port":81}]`,
					`,"anything":{"a":1}`,
				} { // There is no {}, because the server replaces a removed {} with null, and refuses the null.
					if random.IntN(3) == 0 {
						body += part
					}
				}
				return body
			}
			whole := func() string {
				labels := ""
				if random.IntN(2) == 0 {
					labels = `"labels":{"a":"b"}`
				}
				return fmt.Sprintf(`{"metadata":{%s},"spec":{%s}}`, labels, dedupe(some()))
			}
			want := whole()
			p.apply(want)
			for step := range 40 {
				switch random.IntN(8) {
				case 0, 1:
					want = whole()
				case 2:
					p.merge("hand", fmt.Sprintf(`{"spec":{%s}}`, dedupe(some())))
				case 3:
					p.force("thief", whole())
				case 4:
					p.merge("hand", `{"metadata":{"labels":null},"spec":{"tags":null}}`)
				case 5:
					p.restart()
				case 6:
					p.both(func(api kube.API[unstructured.Unstructured], name string) error {
						_, err := api.Status().Patch(t.Context(), name, kube.MergePatch(map[string]any{"status": map[string]any{"seen": step}}))
						return err
					})
				}
				p.applyOrRefuse(want)
				if t.Failed() {
					t.Fatalf("seed %d, step %d, want %s", seed, step, want)
				}
			}
			if sent, refused := p.applyOrRefuse(want); !refused {
				p.want(fmt.Sprintf("seed %d: at rest", seed), 0, sent)
			}
		})
	}
}

// dedupe keeps the first of each member of a JSON object's inside.
func dedupe(members string) string {
	result, seen := "", map[string]bool{}
	for _, m := range split(members) {
		name := m[:indexOf(m, ':')]
		if !seen[name] {
			seen[name] = true
			if result != "" {
				result += ","
			}
			result += m
		}
	}
	return result
}

func indexOf(s string, c rune) int {
	for i, r := range s {
		if r == c {
			return i
		}
	}
	return -1
}

// split cuts the members of a JSON object's inside.
func split(members string) []string {
	var all []string
	depth, start := 0, 0
	for i, c := range members {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				all = append(all, members[start:i])
				start = i + 1
			}
		}
	}
	return append(all, members[start:])
}
