package wire_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// readOnlySecrets is a layer that refuses writes of Secrets, and answers each other request by the layer below.
func readOnlySecrets(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		if !r.Resource.IsSecret() || !r.Verb.IsWrite() {
			return next.Do(ctx, r)
		}
		e := wire.NewError(r) // names the request
		e.Code, e.Answer = http.StatusForbidden, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "Secrets are read-only"}
		return nil, e
	})
}

// A layer of a client sees each request, whatever call of package kube it comes from.
func ExampleHandlerFunc() {
	client := kube.NewClientFromHandler(fakeserver.New()).With(readOnlySecrets)
	_, err := kube.Create(context.Background(), client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"}})
	e, _ := errors.AsType[*wire.Error](err)
	fmt.Println(kube.IsForbidden(err), e.Verb, e.Ref.Resource.GroupResource(), e.Status().Code, e.RetryDelay())
	// Output: true create secrets 403 0s
}

// A layer can look at what a request would change: the verb, the content type, and the preconditions, which are copied
// from the body.
func ExampleRequest() {
	describe := func(r *wire.Request) string {
		what := map[string]string{
			wire.ContentApply: "applies", wire.ContentJSON: "sends", wire.ContentMergePatch: "merges",
			wire.ContentJSONPatch: "edits", wire.ContentStrategicPatch: "merges by keys",
		}[r.ContentType]
		switch r.Verb {
		case wire.VerbPatch, wire.VerbUpdate, wire.VerbCreate:
			return what + " " + r.ObjectName() // a create has the name in its body only
		case wire.VerbDelete, wire.VerbDeleteCollection:
			if r.Preconditions != (wire.Preconditions{}) {
				return "deletes one object: " + string(r.Preconditions.UID)
			}
			return "deletes"
		case wire.VerbWatch:
			return "watches"
		}
		return "reads"
	}
	r := &wire.Request{
		Verb: wire.VerbPatch, ContentType: wire.ContentApply, Name: "web", Namespace: "default",
		Resource: wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"},
		Query:    url.Values{"fieldManager": {"me"}},
	}
	var ref wire.Ref = r.Ref()
	fmt.Println(describe(r), ref)
	fmt.Println(describe(&wire.Request{Verb: wire.VerbDelete, Preconditions: wire.Preconditions{UID: "7"}}))
	// Output:
	// applies web pods "default/web"
	// deletes one object: 7
}

// A Stream names a selection of objects. Its pages are lists, and its frames are the lines of a watch. Package kube and
// the cache are made of these two.
func ExampleStream() {
	ctx, server := context.Background(), fakeserver.New()
	client := kube.NewClientFromHandler(server)
	pods, err := kube.ResourceOf[corev1.Pod]()
	if err != nil {
		fmt.Println(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := kube.Create(ctx, client, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}}}); err != nil {
			fmt.Println(err)
		}
	}
	stream := wire.Stream{Resource: pods, Namespace: "default", Representation: wire.MetadataOnly}
	var last *wire.Page
	for page, err := range stream.Pages(ctx, server, wire.Match{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		last = page
		fmt.Println(len(page.Items), "objects,", len(page.Undecodable), "undecodable")
	}

	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := server.Do(watchCtx, stream.Request(wire.VerbWatch, "resourceVersion", last.ResourceVersion))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.BodyReader.Close()
	if err := client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}); err != nil {
		fmt.Println(err)
	}
	var frame wire.Frame
	for frame, err = range wire.Frames(response.BodyReader) {
		if err == nil && frame.Type == "ERROR" {
			err = stream.StatusError(frame.Object)
		}
		fmt.Println(frame.Type, err)
		break
	}
	// Output:
	// 2 objects, 0 undecodable
	// DELETED <nil>
}

// A list can select by what servers do not know. A handler that answers from memory checks each object by Match.
func ExampleMatch() {
	byNode := kube.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	var index wire.Index = byNode // Check and Values are its methods
	match := wire.Match{Index: index, Value: "n1"}
	fmt.Println(match.Matches([]byte(`{"spec":{"nodeName":"n1"}}`)))
	fmt.Println(index.Values([]byte(`{"spec":{"nodeName":"n2"}}`)))
	pods, _ := kube.ResourceOf[corev1.Pod]() // Pods are built in
	fmt.Println(index.Check(pods, wire.Full))
	// Output:
	// true <nil>
	// [n2] <nil>
	// <nil>
}

// A cache keeps objects as one of three representations: whole, metadata, or some fields.
func ExampleRepresentation() {
	for _, r := range []wire.Representation{wire.Full, wire.MetadataOnly, wire.Projection("status.phase")} {
		fields, isProjection := r.ProjectedFields()
		fmt.Printf("%q %q %t\n", string(r), fields, isProjection)
	}
	// Output:
	// "" "" false
	// "metadata" "metadata" false
	// "fields:status.phase" "status.phase" true
}

// printTracer prints each span. Module github.com/yare-go/yare/otel has a Tracer for OpenTelemetry.
type printTracer struct{}

// Start begins a span.
func (printTracer) Start(ctx context.Context, name string, _ ...slog.Attr) (context.Context, func(error)) {
	return ctx, func(err error) { fmt.Println(name, err) }
}

// Inject adds the header that connects the spans of the server with those of the program.
func (printTracer) Inject(_ context.Context, header http.Header) {
	header.Set("Traceparent", "00-1-1-01")
}

// A Tracer records a span for each request.
func ExampleTrace() {
	var tracer wire.Tracer = printTracer{}
	client := kube.NewClientFromHandler(fakeserver.New()).With(wire.Trace(tracer))
	_, err := kube.Get[corev1.Pod](context.Background(), client, "default", "web")
	fmt.Println(kube.IsNotFound(err))
	traced := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		ctx, done := tracer.Start(ctx, "own")
		r.Header = http.Header{}
		tracer.Inject(ctx, r.Header)
		done(nil)
		return nil, errors.New("no server")
	})
	_, err = traced.Do(context.Background(), &wire.Request{Verb: wire.VerbGet})
	fmt.Println(err)
	// Output:
	// get pods get pods "default/web": pods "web" not found (NotFound)
	// true
	// own <nil>
	// no server
}

// An installer looks which kinds a server has.
func ExampleDiscoverAll() {
	groups := func(ctx context.Context, client *kube.Client) (string, error) {
		all, err := wire.DiscoverAll(ctx, client)
		var names []string
		for _, r := range all {
			names = append(names, r.String())
		}
		return strings.Join(names, " "), err // the resources of other groups come beside an error
	}
	_ = groups
}
