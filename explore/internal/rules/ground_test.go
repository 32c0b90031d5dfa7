package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// scene builds a run from the versions of objects. The program is the field manager "program".
type scene struct {
	rules.Run
	versions []history.Version
	// at is the time of the next event, and step its step.
	at      time.Time
	step    int
	version int
}

func newScene() *scene { return &scene{at: time.Now().Add(-time.Hour)} }

// after lets time pass.
func (s *scene) after(d time.Duration) *scene { s.at = s.at.Add(d); return s }

// store adds a version of an object that somebody has written. The fields are those of the writer.
func (s *scene) store(manager, resource, uid, object string) history.Version {
	s.version++
	u := map[string]any{}
	if err := json.Unmarshal([]byte(object), &u); err != nil {
		panic(err)
	}
	content := &unstructured.Unstructured{Object: u}
	content.SetUID(types.UID(uid))
	content.SetResourceVersion(fmt.Sprint(s.version))
	if content.GetAPIVersion() == "" {
		content.SetAPIVersion("v1")
	}
	v := history.Version{
		Resource: resource, Namespace: "run", Name: content.GetName(), UID: types.UID(uid), ResourceVersion: fmt.Sprint(s.version),
		Object: u, At: s.at, Step: s.step, Manager: manager,
	}
	s.versions = append(s.versions, v)
	s.at = s.at.Add(10 * time.Millisecond)
	return v
}

// write adds a version that the program has written, with its request.
func (s *scene) write(verb, resource, uid, object string) history.Version {
	began := s.at
	v := s.store("program", resource, uid, object)
	s.request(verb, v, began, 200)
	return v
}

// request adds a request of the program that led to a version.
func (s *scene) request(verb string, v history.Version, began time.Time, code int) {
	s.Requests = append(s.Requests, proxy.RequestRecord{
		Point: proxy.Point{Verb: verb, Resource: v.Resource, Name: v.Name, Step: s.step}, Session: "1", Name: v.Name, Path: "/" + v.Resource + "/" + v.Name,
		Code: code, Began: began, Sent: began, Answered: s.at, Ended: s.at, Version: v.ResourceVersion,
	})
}

// deliver adds the delivery of a version to the program.
func (s *scene) deliver(v history.Version) {
	s.Deliveries = append(s.Deliveries, proxy.Delivery{Session: "1", Resource: v.Resource, Step: s.step, At: s.at, Type: "MODIFIED", Name: v.Name, ResourceVersion: v.ResourceVersion})
	s.Observations = append(s.Observations, proxy.Observation{Session: "1", Resource: v.Resource, Name: v.Name, ResourceVersion: v.ResourceVersion, At: s.at})
	s.at = s.at.Add(time.Millisecond)
}

// remove adds the deletion of an object. If the program has sent it, its request is added.
func (s *scene) remove(v history.Version, isByProgram bool) {
	s.version++
	v.IsDeleted, v.ResourceVersion, v.At, v.Step, v.Manager = true, fmt.Sprint(s.version), s.at.Add(time.Millisecond), s.step, ""
	if isByProgram {
		s.request("delete", v, s.at, 200)
	}
	s.versions = append(s.versions, v)
	s.at = s.at.Add(10 * time.Millisecond)
}

// rest ends a step.
func (s *scene) rest() {
	view := history.NewView(history.History{Namespaces: []string{"run"}, Versions: slices.Clone(s.versions)}, history.Options{})
	s.States = append(s.States, view.State())
	s.step++
}

// judge returns the violations of the run, one line each.
func (s *scene) judge(accepted ...finding.Acceptance) (lines []string) {
	a, err := history.NewAccepted(accepted...)
	if err != nil {
		panic(err)
	}
	s.View = history.NewView(history.History{Namespaces: []string{"run"}, Versions: s.versions}, history.Options{Users: []string{"user", faults.ForeignManager}})
	for _, v := range rules.Judge(&s.Run, a) {
		severity := map[rules.Severity]string{rules.Note: "note", rules.Warning: "warning", rules.Failure: "failure"}[v.Severity]
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", severity, v.Rule, v.Effect, v.Object, strings.Join(v.Paths, ","))))
	}
	return lines
}

// require fails t unless the run has these violations.
func (s *scene) require(t *testing.T, want ...string) {
	t.Helper()
	if got := s.judge(); !slices.Equal(got, want) {
		t.Errorf("the violations are %q, want %q", got, want)
	}
}

// requireEvidence fails t unless the evidence of the only violation has a text.
func (s *scene) requireEvidence(t *testing.T, want string) {
	t.Helper()
	accepted, err := history.NewAccepted()
	if err != nil {
		t.Fatal(err)
	}
	all := rules.Judge(&s.Run, accepted)
	if len(all) != 1 || !strings.Contains(all[0].Evidence, want) {
		t.Errorf("the violations are %+v, want one with the evidence %q", all, want)
	}
}

// managed returns an object whose fields belong to field managers: data of the program, and labels of another one.
func managed(fields string, managers ...string) string {
	var entries []string
	for _, each := range managers {
		name, set, _ := strings.Cut(each, "=")
		entries = append(entries, fmt.Sprintf(`{"manager":%q,"operation":"Update","time":"2026-01-01T00:00:00Z","fieldsV1":%s}`, name, set))
	}
	return fmt.Sprintf(fields, `"managedFields":[`+strings.Join(entries, ",")+`]`)
}

const ownsData = `program={"f:data":{"f:text":{}}}`

// owner returns a custom object.
func owner(generation int, status string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"web","generation":%d},"spec":{"text":"a"},"status":%s}`, generation, status)
}

// ownedBy is the owner reference of a child of the Site with the uid "site".
const ownedBy = `"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Site","name":"web","uid":"site","controller":true}]`

// page returns a child with a text.
func page(text string) string {
	return managed(`{"metadata":{"name":"page",`+ownedBy+`,%s},"data":{"text":"`+text+`"}}`, ownsData)
}

const sites = "sites.example.com"

// read adds a list of the program whose answer has a hash.
func (s *scene) read(hash uint64) {
	s.Requests = append(s.Requests, proxy.RequestRecord{
		Point: proxy.Point{Verb: "list", Resource: "configmaps", Step: s.step}, Session: "1", Path: "/configmaps", Code: 200,
		Began: s.at, Sent: s.at, Answered: s.at, Ended: s.at, AnswerHash: hash,
	})
	s.at = s.at.Add(time.Millisecond)
}
