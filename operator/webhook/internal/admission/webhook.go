package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Webhook is a function of a program that the API server calls about the objects of one kind.
type Webhook struct {
	// Type is the kind of the objects. Its resource is empty if the kind is not valid.
	Type kube.Type
	// IsMutating is true for a [Defaulter] and a [ForeignMutator].
	IsMutating bool
	// Options are the options of a [Validator]. Those of another webhook are zero.
	Options ValidatorOptions

	// foreign is set for a webhook of a kind of others.
	foreign *foreign
	// name is empty if the kind is not valid.
	name string
	// answerRequest is validate, addDefaults or mutate. It is a field, so that a program without defaulters does not link
	// their code.
	answerRequest func(ctx context.Context, e *endpoint, r *request) *answer
	// decode returns a pointer to the Go type with the content of an object.
	decode func(c *kube.Client, object []byte) (any, error)
	// check is set for a validator. before and after hold pointers to the Go type, or nil.
	check func(ctx context.Context, before, after any, c *kube.Client) error
	// setDefaults is set for a defaulter. object holds a pointer to the Go type.
	setDefaults func(ctx context.Context, object any)
	// mutate is set for a mutator. object holds a pointer to the Go type.
	mutate func(ctx context.Context, object any, c *kube.Client) error
	err    error
}

// ValidatorOptions change when a validator is called, and what its errors do. The zero value is the default.
type ValidatorOptions struct {
	// Deletions is true for a validator that is also called before an object is deleted. While the operator is down,
	// such a validator blocks the deletion of the objects, and so the deletion of their namespaces.
	Deletions bool
	// Metadata is true for a validator that is also called when only labels or annotations change.
	Metadata bool
	// NoRatcheting is true if a field error refuses an update even when the object had the same error before.
	NoRatcheting bool
	// Ignore is true if requests pass while nobody answers. Default: they fail.
	Ignore bool
}

// Validator returns a webhook that refuses an object if check returns an error. before is nil for an object that is
// created, and for an old object that does not fit its Go type. after is nil for a deletion. At least one of the two is
// set. check may be called concurrently. Its context ends shortly before the API server gives up the call: see
// [Handler]. The client only reads.
//
// What an error does depends on the error:
//
//   - Field errors (*field.Error, alone or joined) refuse the request with 422, and the answer has them all as causes.
//     A field error that check(before, before) returns too is only a warning, unless NoRatcheting is set.
//   - An error that may pass by itself makes the API server call again: the API server cannot be reached, a timeout, an
//     answer 429 or 5xx, an ended context.
//   - Any other error refuses the request with 403 and its text. That is also so for other errors beside field errors.
func Validator[T any, P kube.DefinedObjectOf[T]](
	check func(ctx context.Context, before, after *T, c *kube.Client) error, options ValidatorOptions,
) *Webhook {
	// The compiler compiles this function for each T. Therefore functions without T do the work.
	w := newWebhook[T, P]()
	w.Options, w.answerRequest = options, validate
	w.init("validate", check == nil)
	setCheck(w, check)
	return w
}

// setCheck sets the function of a validator.
func setCheck[T any](w *Webhook, check func(ctx context.Context, before, after *T, c *kube.Client) error) {
	w.check = func(ctx context.Context, before, after any, c *kube.Client) error {
		b, _ := before.(*T) // nil stays nil
		a, _ := after.(*T)
		return check(ctx, b, a, c)
	}
}

// Defaulter returns a webhook that adds fields to an object before the object is stored. setDefaults changes the object
// in place. Only what it adds counts:
//
//   - What the request sets stays. A zero and a null count as set. A change or a removal is dropped and counted, and in
//     strict mode the request fails.
//   - Nothing is added inside an atomic list or an atomic map that the request sets. Lists are atomic by default.
//   - The metadata and the status stay as they are.
//
// setDefaults must change nothing when it is called for its own result. It is never called for an object that is being
// deleted. It may be called concurrently. An object that does not fit its Go type gets no defaults.
func Defaulter[T any, P kube.DefinedObjectOf[T]](setDefaults func(ctx context.Context, object *T)) *Webhook {
	w := newWebhook[T, P]()
	w.IsMutating, w.answerRequest = true, addDefaults
	w.init("default", setDefaults == nil)
	w.setDefaults = func(ctx context.Context, object any) { setDefaults(ctx, object.(*T)) }
	return w
}

// newWebhook returns a webhook for T, without its function.
func newWebhook[T any, P kube.ObjectOf[T]]() *Webhook {
	w := &Webhook{}
	w.Type, w.err = kube.TypeOfObject(P(new(T))) // the error names the type
	w.decode = func(c *kube.Client, object []byte) (any, error) {
		t, err := kube.APIOf[T, P](c, w.Type, "").Decode(object)
		if err != nil {
			return nil, err // without a nil *T
		}
		return t, nil
	}
	return w
}

// init sets the name of w. It sets the error of w if its kind cannot have a webhook, or if its function is nil.
func (w *Webhook) init(verb string, isNil bool) {
	if w.err != nil {
		return
	}
	w.name = verb + "." + w.Type.Resource.String()
	switch {
	case isNil:
		w.err = errors.New("its function is nil")
	case w.Type.Definition.Foreign:
		w.err = errors.New(
			"the Definition is Foreign, and this webhook is for kinds that the program defines: take ValidateForeign or MutateForeign of package operator/webhook")
	case w.Type.Definition.NotServed:
		w.err = errors.New(
			"the Definition is NotServed, so no request can have this version: take the type of a version that is served")
	}
}

// initForeign sets the name and the requests of w, or the error of w.
func (w *Webhook) initForeign(verb string, isNil bool, o ForeignOptions) {
	if w.err != nil {
		return
	}
	r := w.Type.Resource
	w.name = verb + "." + r.GroupResource().String()
	if r.Group == "" {
		w.name += ".core" // the name of an entry has three parts or more
	}
	if o.Name != "" {
		w.name = o.Name + "." + w.name
	}
	f := &foreign{subresources: o.Subresources, failurePolicy: "Ignore"}
	w.foreign = f
	var errs []error
	if isNil {
		errs = append(errs, errors.New("its function is nil"))
	}
	if d := w.Type.Definition; d != nil && !d.Foreign {
		errs = append(errs, fmt.Errorf("the program defines the kind %s: take Validate, ValidateWith or Default, or set Foreign in the Definition if another program defines the kind", r.Kind))
	}
	if o.Name != "" && len(validation.IsDNS1123Label(o.Name)) > 0 {
		errs = append(errs, fmt.Errorf("the Name %q is not valid: take small letters, digits and hyphens", o.Name))
	}
	for _, each := range []struct {
		operation string
		isWanted  bool
	}{{"CREATE", o.OnCreate}, {"UPDATE", o.OnUpdate}, {"DELETE", o.OnDelete}} {
		if each.isWanted {
			f.operations = append(f.operations, each.operation)
		}
	}
	switch {
	case w.IsMutating && o.OnDelete:
		errs = append(errs, errors.New("a deletion has nothing to change: leave out OnDelete, or take ValidateForeign"))
	case len(f.operations) == 0 && len(o.Subresources) == 0:
		errs = append(errs, errors.New(
			"no request calls it: set OnCreate, OnUpdate, OnDelete or Subresources of the ForeignOptions"))
	}
	if o.FailBecause != "" {
		f.failurePolicy = "Fail"
	}
	if o.Timeout == 0 {
		o.Timeout = defaultForeignTimeout
	}
	if o.Timeout < time.Second || o.Timeout > maxForeignTimeout || o.Timeout%time.Second != 0 {
		errs = append(errs, fmt.Errorf("the Timeout is %s: take whole seconds from 1s to %s", o.Timeout, maxForeignTimeout))
	}
	f.timeoutSeconds = int32(o.Timeout / time.Second) //nolint:gosec // it is 10 at most
	w.err = errors.Join(append(errs, w.checkSubresources(o), f.parseSelectors(r, o))...)
}

// checkSubresources returns what is wrong with the subresources of w.
func (w *Webhook) checkSubresources(o ForeignOptions) error {
	r := w.Type.Resource
	var errs []error
	for _, name := range o.Subresources {
		s, isKnown := subresourceOf(name)
		switch {
		case !isKnown || s.isOfPods && (r.Group != "" || r.Plural != "pods"):
			errs = append(errs, fmt.Errorf("it cannot be called about the subresource %q of %s: take status, scale and, of Pods, ephemeralcontainers, resize or eviction",
				name, r.GroupResource()))
		case s.body != "" && w.IsMutating:
			errs = append(errs, fmt.Errorf("it cannot change the subresource %s, whose body is of the kind %s: take ValidateForeign",
				name, s.body))
		case s.body != "" && o.Objects != "":
			errs = append(errs, fmt.Errorf("the selector of Objects %q cannot select for the subresource %s, whose body is of the kind %s and has no labels: select by Namespaces, in a webhook with a Name if you need both",
				o.Objects, name, s.body))
		}
	}
	return errors.Join(errs...)
}

// Err returns an error that names the webhook if the webhook cannot be used, such as for a nil function.
func (w *Webhook) Err() error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", w, w.err)
}

// Name returns the name of the webhook in its configuration, such as validate.webapps.example.com. Users see it in
// the errors of their requests.
func (w *Webhook) Name() string { return w.name }

// Operations returns the operations that the API server calls w about.
func (w *Webhook) Operations() []string {
	if w.foreign != nil {
		return w.foreign.allOperations()
	}
	if w.Options.Deletions {
		return []string{"CREATE", "UPDATE", "DELETE"}
	}
	return []string{"CREATE", "UPDATE"}
}

// IsForeign reports whether w is about a kind of others.
func (w *Webhook) IsForeign() bool { return w.foreign != nil }

// mayPassFailed reports whether a request passes if the function of w fails, such as by a panic.
func (w *Webhook) mayPassFailed() bool {
	return w.foreign != nil && w.foreign.failurePolicy == "Ignore"
}

// Access returns the permissions that w needs beside those of its function.
func (w *Webhook) Access() []kube.Access {
	if w.foreign == nil || !w.foreign.readsObjects() {
		return nil
	}
	return []kube.Access{{Resource: w.Type.Resource, Verbs: []wire.Verb{wire.VerbGet}}}
}

// Path returns the path of the URL, such as /validate.webapps.example.com/v1.
func (w *Webhook) Path() string { return "/" + w.name + "/" + w.Type.Resource.Version }

// String returns the name for errors, such as "the webhook validate.webapps.example.com".
func (w *Webhook) String() string { return "the webhook " + w.name }

// Check returns an error if a webhook cannot be used, or if two webhooks of one role are for one kind. It returns all
// errors together.
func Check(webhooks []*Webhook) error {
	var problems []error
	for _, each := range webhooks {
		problems = append(problems, each.Err())
	}
	return errors.Join(append(problems, CheckDuplicates(webhooks))...)
}

// CheckDuplicates returns an error for each webhook whose role and kind an earlier one has.
func CheckDuplicates(webhooks []*Webhook) error {
	var problems []error
	names := make(map[string]bool)
	for _, each := range webhooks {
		if name := each.Name(); name != "" && names[name] {
			problems = append(problems, errors.New(each.String()+" is declared twice: make one function of the two, or give one of kinds of others a Name"))
		} else {
			names[name] = true
		}
	}
	return errors.Join(problems...)
}
