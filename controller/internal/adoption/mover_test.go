package adoption

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// entry returns an entry of managedFields, such as "manager Update v1" with its fields.
func entry(manager, operation, version, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: version,
		Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// TestOwnershipMove has an object of the owner with the uid 1, and an apply of it as "us" in the version v1. The former
// field managers are "manager", "us-before" and "before-first-apply".
func TestOwnershipMove(t *testing.T) {
	t.Parallel()
	const apply = `{"metadata":{"labels":{"app":"a"}},"spec":{"size":1,"list":[{"name":"x","image":"i"}],"set":["one"]}}`
	for name, test := range map[string]struct {
		entries     []metav1.ManagedFieldsEntry
		subresource string
		// want holds the entries after the move, and nothing if nothing moves.
		want       []string
		removed    []string
		kept       []string
		isDeferred bool
	}{
		"nothing is former": {entries: []metav1.ManagedFieldsEntry{entry("kubectl", "Update", "v1", "", `{"f:spec":{"f:size":{}}}`)}},
		"an update": {
			entries: []metav1.ManagedFieldsEntry{entry("manager", "Update", "v1", "", `{"f:spec":{".":{},"f:size":{},"f:other":{}}}`)},
			want:    []string{`us Apply v1 {"f:spec":{".":{},"f:other":{},"f:size":{}}}`}, removed: []string{"spec.other"},
		},
		"an update beside the own apply": {
			entries: []metav1.ManagedFieldsEntry{
				entry("us", "Apply", "v1", "", `{"f:spec":{"f:size":{}}}`), entry("manager", "Update", "v1", "", `{"f:spec":{"f:size":{},"f:other":{"f:deep":{}}}}`),
			},
			want: []string{`us Apply v1 {"f:spec":{"f:other":{"f:deep":{}},"f:size":{}}}`}, removed: []string{"spec.other"},
		},
		"an update by the present name": {
			entries: []metav1.ManagedFieldsEntry{entry("us", "Update", "v1", "", `{"f:spec":{"f:other":{}}}`)},
		},
		"a field that somebody else owns too": {
			entries: []metav1.ManagedFieldsEntry{
				entry("manager", "Update", "v1", "", `{"f:spec":{"f:other":{}}}`), entry("kubectl", "Update", "v1", "", `{"f:spec":{"f:other":{}}}`),
			},
			want: []string{`kubectl Update v1 {"f:spec":{"f:other":{}}}`, `us Apply v1 {"f:spec":{"f:other":{}}}`},
		},
		"items of lists": {
			entries: []metav1.ManagedFieldsEntry{entry("before-first-apply", "Update", "v1", "",
				`{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:image":{},"f:port":{}},"k:{\"name\":\"y\"}":{".":{}}},"f:set":{"v:\"one\"":{},"v:\"two\"":{}}}}`)},
			want:    []string{`us Apply v1 {"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:image":{},"f:port":{}},"k:{\"name\":\"y\"}":{".":{}}},"f:set":{"v:\"one\"":{},"v:\"two\"":{}}}}`},
			removed: []string{`spec.list[{"name":"x"}].port`, `spec.list[{"name":"y"}]`, `spec.set["two"]`},
		},
		"metadata of an update": {
			entries: []metav1.ManagedFieldsEntry{entry("manager", "Update", "v1", "",
				`{"f:metadata":{"f:annotations":{".":{},"f:example.com/note":{}},"f:finalizers":{".":{},"v:\"a/b\"":{}},"f:labels":{".":{},"f:app":{},"f:team":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{},"k:{\"uid\":\"2\"}":{}}}}`)},
			want: []string{
				`manager Update v1 {"f:metadata":{"f:finalizers":{".":{},"v:\"a/b\"":{}},"f:labels":{".":{},"f:team":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"2\"}":{}}}}`,
				`us Apply v1 {"f:metadata":{"f:annotations":{".":{},"f:example.com/note":{}},"f:labels":{"f:app":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}`,
			},
			removed: []string{"metadata.annotations", `metadata.ownerReferences[{"uid":"1"}]`},
		},
		"metadata of an apply": {
			entries: []metav1.ManagedFieldsEntry{entry("us-before", "Apply", "v1", "",
				`{"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}},"f:labels":{"f:app":{},"f:team":{}}},"f:spec":{"f:size":{}}}`)},
			want: []string{
				`us-before Apply v1 {"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}}}}`,
				`us Apply v1 {"f:metadata":{"f:labels":{"f:app":{},"f:team":{}}},"f:spec":{"f:size":{}}}`,
			},
			removed: []string{"metadata.labels.team"},
		},
		"elements that no metadata has": {
			entries: []metav1.ManagedFieldsEntry{entry("manager", "Update", "v1", "",
				`{"f:metadata":{"f:labels":{"i:0":{},"v:1":{}},"f:ownerReferences":{"f:uid":{}},"k:{\"a\":1}":{"f:b":{}}}}`)},
		},
		"another API version": {
			entries: []metav1.ManagedFieldsEntry{entry("manager", "Update", "v1beta1", "", `{"f:spec":{"f:other":{}}}`)},
			kept:    []string{"manager"},
		},
		"the own apply has another API version": {
			entries: []metav1.ManagedFieldsEntry{
				entry("us", "Apply", "v1beta1", "", `{"f:spec":{}}`), entry("manager", "Update", "v1", "", `{"f:spec":{"f:other":{}}}`),
			},
			isDeferred: true,
		},
		"another subresource": {
			entries: []metav1.ManagedFieldsEntry{entry("manager", "Update", "v1", "scale", `{"f:spec":{"f:replicas":{}}}`)},
		},
		"the status": {
			entries: []metav1.ManagedFieldsEntry{
				entry("manager", "Update", "v1", "status", `{"f:status":{"f:old":{}}}`), entry("manager", "Update", "v1", "", `{"f:spec":{"f:size":{}}}`),
			},
			subresource: "status",
			want:        []string{`manager Update v1 {"f:spec":{"f:size":{}}}`, `us Apply v1 status {"f:status":{"f:old":{}}}`},
			removed:     []string{"status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMover(nil, slog.New(slog.DiscardHandler), []string{"manager", "us-before", "before-first-apply"}, []string{"example.com/"}, nil)
			r := &wire.Request{
				Resource: wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1"}}, Subresource: test.subresource,
				Body: []byte(apply), Query: url.Values{"fieldManager": {"us"}},
			}
			move, err := m.plan(&metav1.ObjectMeta{ResourceVersion: "7", ManagedFields: test.entries}, r, wire.Ref{UID: "1"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range move.entries {
				head := fmt.Sprintf("%s %s %s ", e.Manager, e.Operation, e.APIVersion)
				if e.Subresource != "" {
					head += e.Subresource + " "
				}
				got = append(got, head+string(e.FieldsV1.GetRawBytes()))
			}
			if !move.isNeeded {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.removed, move.removed); diff != "" {
				t.Errorf("removed fields (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.kept, move.kept); diff != "" || move.isDeferred != test.isDeferred {
				t.Errorf("deferred %t, kept (-want +got):\n%s", move.isDeferred, diff)
			}
		})
	}
}

// The log names the field managers whose fields stay because of their API version, and the fields that the next apply
// removes, once for each kind. It warns of replicas.
func TestLogOfMoves(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := NewMover(nil, slog.New(slog.NewTextHandler(&log, nil)), []string{"manager"}, nil, nil)
	request := func(plural, name string) *wire.Request {
		return &wire.Request{
			Resource:  wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1"}, Plural: plural},
			Namespace: "default", Name: name, Query: url.Values{"fieldManager": {"us"}},
		}
	}
	for _, name := range []string{"a", "b"} {
		m.logKept(request("deployments", name), []string{"manager"})
		m.logMove(request("deployments", name), &ownershipMove{removed: []string{"spec.paused", "spec.replicas"}})
	}
	m.logMove(request("daemonsets", "c"), &ownershipMove{removed: []string{"spec.paused"}})
	m.logKept(request("daemonsets", "c"), nil)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	wanted := [][]string{
		{"level=WARN", "another API version", "default/a", "managers=manager"},
		{"level=WARN", "removes spec.replicas", "default/a", "spec.paused spec.replicas"},
		{"level=INFO", "now belong to this controller", "default/c", "removed=[spec.paused]"},
	}
	if len(lines) != len(wanted) {
		t.Fatalf("the log has %d lines, want %d:\n%s", len(lines), len(wanted), log.String())
	}
	for i, parts := range wanted {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d does not contain %q: %s", i+1, part, lines[i])
			}
		}
	}
}
