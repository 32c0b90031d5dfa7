package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// bulbSite is an installation of the program with bulbs, with its users.
type bulbSite struct {
	*processSite
	// v1 and v2 are the bulbs in each version, for users.
	v1, v2 kube.API[unstructured.Unstructured]
	model  *bulbModel
	// home is the namespace of the bulbs.
	home string
}

func newBulbSite(t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork, group, namespace string) *bulbSite {
	t.Helper()
	s := &bulbSite{processSite: newProcessSite(t, cluster, network, "bulbs", group, namespace), model: &bulbModel{bulbs: make(map[string]bulb)}}
	s.home = s.users[0]
	s.v1, s.v2 = s.bulbs(s.userClient, "v1"), s.bulbs(s.userClient, "v2")
	admin1, admin2 := s.bulbs(s.client, "v1"), s.bulbs(s.client, "v2")
	s.isServed = func() error {
		_, err := admin1.List(t.Context())
		if err != nil {
			_, err = admin2.List(t.Context())
		}
		return err
	}
	t.Cleanup(s.endConversion)
	return s
}

// endConversion makes the API server convert the bulbs without a program, when all programs have ended.
//
// Regression: namespaces of tests on the same cluster were not deleted. The controller that deletes namespaces lists each kind in
// its preferred version. A list of bulbs fails as long as the definition names a program that has ended.
func (s *bulbSite) endConversion() {
	_, err := kube.Dynamic(s.client, definitionResource(), "").Patch(context.Background(), "bulbs."+s.group,
		kube.MergePatch(map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}}))
	if kube.IgnoreNotFound(err) != nil {
		s.t.Errorf("end the conversion of the bulbs: %v", err)
	}
}

// bulbs returns the bulbs in a version.
func (s *bulbSite) bulbs(client *kube.Client, version string) kube.API[unstructured.Unstructured] {
	return kube.Dynamic(client, wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: s.group, Version: version, Kind: "Bulb"}, Plural: "bulbs",
	}, s.home)
}

// api returns the bulbs in a version, for users.
func (s *bulbSite) api(version int) kube.API[unstructured.Unstructured] {
	if version == 1 {
		return s.v1
	}
	return s.v2
}

// waitUntilServed waits until the API server serves a version, as a user does before the first use.
func (s *bulbSite) waitUntilServed(version int) {
	s.t.Helper()
	api := s.api(version).For(s.client, s.home)
	yaretest.Eventually(s.t, func() error { _, err := api.List(s.t.Context()); return err })
}

// bulb is what users have written into a bulb.
type bulb struct {
	hue, shade string
	note       string
	watts      int
}

// specIn returns the spec of the bulb in a version, without what the version cannot express.
func (b bulb) specIn(version int) map[string]any {
	spec := make(map[string]any)
	set := func(name, value string) {
		if value != "" {
			spec[name] = value
		}
	}
	if version == 1 {
		set("color", joined(b.hue, b.shade))
		set("note", b.note)
		return spec
	}
	set("hue", b.hue)
	set("shade", b.shade)
	if b.watts != 0 {
		spec["watts"] = int64(b.watts)
	}
	return spec
}

// bulbModel is what users expect of the bulbs. It is safe for concurrent use.
type bulbModel struct {
	mu    sync.Mutex
	bulbs map[string]bulb
}

// change records a change of a bulb.
func (m *bulbModel) change(name string, change func(b *bulb)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.bulbs[name]
	change(&b)
	m.bulbs[name] = b
}

// forgetNotes records that the values are gone which only v1 can express.
func (m *bulbModel) forgetNotes() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, b := range m.bulbs {
		b.note = ""
		m.bulbs[name] = b
	}
}

// shared returns the name of a bulb that users of both versions change.
func shared(i int) string { return fmt.Sprint("bulb-", i) }

// create creates n bulbs in a version.
func (s *bulbSite) create(version, n int) {
	s.t.Helper()
	for i := range n {
		b := bulb{hue: "red", shade: []string{"", "dark"}[i%2]}
		if version == 1 {
			b.note = fmt.Sprint("the first note of ", i)
		} else {
			b.watts = 1 + i
		}
		if _, err := s.api(version).Create(s.t.Context(), newObject(shared(i), b.specIn(version))); err != nil {
			s.t.Fatal(err)
		}
		s.model.change(shared(i), func(m *bulb) { *m = b })
	}
}

// bulbUsers is the number of users of each version.
const bulbUsers = 4

// startUsers starts users who work in one version: see [startLoad]. They share n bulbs with the users of the other version: in v1
// they set the notes and the colors of bulbs with an even number, and in v2 the watts and the colors of the others. n is a
// multiple of 2 * bulbUsers.
func (s *bulbSite) startUsers(version, n int) *load {
	api := s.api(version)
	return startLoad(s.t, bulbUsers, func(ctx context.Context, user, call int) error {
		i := (user + bulbUsers*call) % n
		switch call % 6 {
		case 0: // a field that only this version has
			name, b := shared(i), bulb{note: fmt.Sprintf("note %d of %d", call, user)}
			if version == 2 {
				b = bulb{watts: 1 + call}
			}
			_, err := api.Patch(ctx, name, kube.MergePatch(map[string]any{"spec": b.specIn(version)}))
			if err == nil {
				s.model.change(name, func(m *bulb) {
					if version == 1 {
						m.note = b.note
					} else {
						m.watts = b.watts
					}
				})
			}
			return err
		case 1: // an update of what was read
			name := shared(2*((user+bulbUsers*call)%(n/2)) + version - 1)
			b := bulb{hue: []string{"red", "green", "blue"}[call%3], shade: []string{"", "light"}[call%2]}
			_, err := api.Modify(ctx, name, func(o *unstructured.Unstructured) error {
				spec, _ := o.Object["spec"].(map[string]any)
				if version == 1 {
					spec["color"] = joined(b.hue, b.shade)
					return nil
				}
				spec["hue"] = b.hue
				if delete(spec, "shade"); b.shade != "" {
					spec["shade"] = b.shade
				}
				return nil
			})
			if err == nil {
				s.model.change(name, func(m *bulb) { m.hue, m.shade = b.hue, b.shade })
			}
			return err
		case 2: // an apply of an object of the user
			name, b := appliedBulb(version, user), bulb{hue: "green", shade: fmt.Sprint("shade", call%5), note: fmt.Sprint("applied ", call), watts: 1 + call}
			if version == 1 {
				b.watts = 0
			} else {
				b.note = ""
			}
			_, err := api.Apply(ctx, newObject(name, b.specIn(version)), kube.FieldManager(name), kube.NoForce())
			if err == nil {
				s.model.change(name, func(m *bulb) { *m = b })
			}
			return err
		case 3: // an object that comes and goes
			name := fmt.Sprintf("passing-v%d-%d-%d", version, user, call)
			b := bulb{hue: "blue", shade: "dark"}
			_, err := api.Create(ctx, newObject(name, b.specIn(version)))
			if err == nil {
				var o *unstructured.Unstructured
				if o, err = api.Get(ctx, name); err == nil && specOf(o) != fmt.Sprint(b.specIn(version)) {
					err = fmt.Errorf("%s is %v", name, o.Object["spec"])
				}
			}
			return errors.Join(err, api.Delete(ctx, name))
		case 4:
			all, err := api.List(ctx)
			if err == nil && len(all) < n {
				err = fmt.Errorf("a list has %d objects, and there are %d", len(all), n)
			}
			return err
		default:
			label := map[string]any{"metadata": map[string]any{"labels": map[string]any{fmt.Sprint("v", version): fmt.Sprint("c", call)}}}
			_, err := api.Patch(ctx, shared(i), kube.MergePatch(label))
			return err
		}
	})
}

// appliedBulb returns the name of the bulb that a user of a version applies. It is the field manager of the user too.
func appliedBulb(version, user int) string { return fmt.Sprintf("applied-v%d-%d", version, user) }

// mustFit compares all bulbs with the model, in each of the versions.
func (s *bulbSite) mustFit(when string, versions ...int) {
	s.t.Helper()
	for _, version := range versions {
		all, err := s.api(version).List(s.t.Context())
		if err != nil {
			s.t.Fatalf("%s: %v", when, err)
		}
		found := make(map[string]*unstructured.Unstructured)
		for _, o := range all {
			found[o.GetName()] = o
		}
		s.model.mu.Lock()
		wrong := 0
		for name, b := range s.model.bulbs {
			o := found[name]
			if o == nil {
				s.t.Errorf("%s: %s is gone in v%d", when, name, version)
				continue
			}
			if want := fmt.Sprint(b.specIn(version)); specOf(o) != want {
				if wrong++; wrong <= 5 {
					s.t.Errorf("%s: in v%d, %s is %s, want %s, with the annotations %v", when, version, name, specOf(o), want, o.GetAnnotations())
				}
			}
		}
		if wrong > 0 {
			s.t.Errorf("%s: in v%d, %d of %d bulbs have lost a field", when, version, wrong, len(s.model.bulbs))
		}
		s.model.mu.Unlock()
	}
}

// mustOwn applies the bulbs again that the users of a version have applied, now in another version. An apply without news changes
// nothing, and an apply without a field removes the field: each user owns what the user has owned.
func (s *bulbSite) mustOwn(when string, applied, version int) {
	s.t.Helper()
	api := s.api(version)
	for user := range bulbUsers {
		name := appliedBulb(applied, user)
		s.model.mu.Lock()
		b := s.model.bulbs[name]
		s.model.mu.Unlock()
		before, err := api.Get(s.t.Context(), name)
		if err != nil {
			s.t.Fatalf("%s: %v", when, err)
		}
		if applied != version { // a user of the other version has not set these
			b.watts, b.note = 0, ""
		}
		options := []kube.ApplyOption{kube.FieldManager(name), kube.NoForce()}
		after, err := api.Apply(s.t.Context(), newObject(name, b.specIn(version)), options...)
		if err != nil {
			s.t.Errorf("%s: an apply of %s in v%d: %v", when, name, version, err)
			continue
		}
		if specOf(after) != specOf(before) {
			s.t.Errorf("%s: an apply of %s in v%d has changed %s to %s", when, name, version, specOf(before), specOf(after))
		}
		if !slices.ContainsFunc(after.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
			return m.Manager == name && m.Operation == metav1.ManagedFieldsOperationApply
		}) {
			s.t.Errorf("%s: %s does not own its fields: %v", when, name, after.GetManagedFields())
		}
		field := b.clearOwned(applied, version)
		if field == "" {
			continue
		}
		after, err = api.Apply(s.t.Context(), newObject(name, b.specIn(version)), options...)
		if err != nil {
			s.t.Errorf("%s: an apply of %s without the field %s: %v", when, name, field, err)
			continue
		}
		if spec, _ := after.Object["spec"].(map[string]any); spec[field] != nil {
			s.t.Errorf("%s: %s does not own the field %s: %v", when, name, field, after.Object)
		}
		s.model.change(name, func(m *bulb) { *m = b })
	}
}

// clearOwned clears a field that a user of one version has applied, and returns the name of the field in another version. It returns
// nothing if the other version has the color alone, which each bulb needs.
func (b *bulb) clearOwned(applied, version int) string {
	switch {
	case applied == 1 && version == 1:
		b.note = ""
		return "note"
	case applied == 2 && version == 2:
		b.watts = 0
		return "watts"
	case version == 2:
		b.shade = ""
		return "shade"
	}
	return ""
}

// introduce brings in a release that serves a further version, in the two steps of the guide, and returns the new Pods.
func (s *bulbSite) introduce(release string, old []*pod) []*pod {
	s.t.Helper()
	s.apply(release, "--without-definitions")
	pods := s.replace(release, old...)
	s.apply(release, "--check")
	return pods
}

// follow applies a release and replaces the Pods, as the guide says, and returns the new Pods.
func (s *bulbSite) follow(release string, old []*pod) []*pod {
	s.t.Helper()
	s.apply(release, "--check")
	return s.replace(release, old...)
}

// bulbGroup returns the API group G.
func bulbGroup[G interface{ Group() string }]() string {
	var g G
	return g.Group()
}
