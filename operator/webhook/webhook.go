// Package webhook has parts by which API servers ask a program before they store an object: [Validate] refuses objects,
// and [Default] completes them. [ValidateForeign] and [MutateForeign] are for Pods and other kinds of others.
//
//	operator.Main(controller.New(reconcile), webhook.Validate(validate), webhook.Default(setDefaults))
//
// The program makes and publishes its certificates. docs/guide/webhooks.md describes how to run and install it.
package webhook

import (
	"context"
	"errors"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

// Validate returns a part by which the API server asks check before it stores an object of T. The program must define
// T. If check returns an error, the request fails, and its user sees the error:
//
//	operator.Main(controller.New(reconcile), webhook.Validate(validate))
//
//	func validate(ctx context.Context, before, after *CronJob, c *kube.Client) error {
//		if _, err := cron.Parse(after.Spec.Schedule); err != nil {
//			return field.Invalid(field.NewPath("spec", "schedule"), after.Spec.Schedule, err.Error())
//		}
//		return nil
//	}
//
// The API server calls check when an object is created, and when something outside of its metadata and its status
// changes. before is nil for a new object, and for an old object that does not fit its Go type. A write of the
// subresource scale is such a change too: before is the stored object, and after has the new number.
//
// The error decides what the user sees:
//
//   - A field error (*field.Error, alone or several by [errors.Join]) refuses the request with the code 422, as an error
//     of the schema does. A field error that check(before, before) returns too is only a warning: a change of an object
//     that was stored before a rule came is not refused because of the rule.
//   - An error that may pass by itself makes the API server ask again, within 10 seconds: the API server cannot be
//     reached, a timeout, an answer 429 or 5xx, an ended context.
//   - Any other error, and a panic, refuses the request with its text.
//
// The client c reads from the cache, as that of [controller.Runtime.CachedClient], and it cannot write. What it reads
// is declared by permissions. [CallOf] returns who makes the request, and [Warn] shows the user a warning. Several
// calls run at once.
//
// Every replica answers, also a standby. While no replica answers, requests about these objects fail. The flag
// --webhooks sets the address, and the command manifests prints it: see docs/guide/webhooks.md.
func Validate[T any, P kube.DefinedObjectOf[T]](
	check func(ctx context.Context, before, after *T, c *kube.Client) error, permissions ...controller.Permission,
) operator.Part {
	return ValidateWith[T, P](ValidateOptions{}, check, permissions...)
}

// ValidateOptions change when the API server calls a check, and what an error of the check does. The zero value stands
// for the behaviour of [Validate].
type ValidateOptions struct {
	// OnDelete adds the deletions of objects: after is nil then. While no replica answers, such a check blocks the
	// deletion of the objects, and so the deletion of their namespaces.
	OnDelete bool
	// OnMetadata adds the changes of labels and annotations.
	OnMetadata bool
	// NoRatcheting refuses a change for an error that the object had before, too.
	NoRatcheting bool
	// AllowUnanswered lets requests pass while no replica answers (the failurePolicy Ignore).
	AllowUnanswered bool
}

// ValidateWith returns the part that [Validate] returns, with options.
func ValidateWith[T any, P kube.DefinedObjectOf[T]](
	options ValidateOptions, check func(ctx context.Context, before, after *T, c *kube.Client) error,
	permissions ...controller.Permission,
) operator.Part {
	return newPart(admission.Validator[T, P](check, admission.ValidatorOptions{
		Deletions: options.OnDelete, Metadata: options.OnMetadata, NoRatcheting: options.NoRatcheting,
		Ignore: options.AllowUnanswered,
	}), permissions)
}

// Default returns a part by which the API server completes an object of T before it stores the object. The program must
// define T. setDefaults changes the object in place:
//
//	operator.Main(controller.New(reconcile), webhook.Default(setDefaults))
//
//	func setDefaults(_ context.Context, c *CronJob) {
//		if c.Spec.ConcurrencyPolicy == "" {
//			c.Spec.ConcurrencyPolicy = "Forbid"
//		}
//	}
//
// Only what setDefaults adds counts. What the request sets stays, also a zero and a null, because another value would
// be a conflict at each server-side apply. Nothing is added inside a list or a map that is atomic and that the request
// sets. The metadata and the status stay as they are. A change and a removal are dropped and counted, and in yare dev
// and in tests they are errors. So is a second call that changes something.
//
// The API server calls setDefaults as it calls the check of [Validate], and never for an object that is being deleted.
// A constant default needs no function: see the tag crd:"default=…".
func Default[T any, P kube.DefinedObjectOf[T]](setDefaults func(ctx context.Context, object *T)) operator.Part {
	return newPart(admission.Defaulter[T, P](setDefaults), nil)
}

// part is a part with a webhook.
type part struct {
	function *admission.Webhook
	needs    kube.Needs
	err      error
}

func newPart(w *admission.Webhook, permissions []controller.Permission) part {
	p := part{function: w, needs: kube.Needs{EveryReplica: true, Access: w.Access()}}
	errs := []error{w.Err()}
	for _, each := range permissions {
		declared, err := each.Needs()
		errs = append(errs, err)
		p.needs.Access, p.needs.Rules = append(p.needs.Access, declared.Access...), append(p.needs.Rules, declared.Rules...)
	}
	if p.err = errors.Join(errs...); p.err == nil && !w.IsForeign() {
		p.needs.Defines = []kube.Type{w.Type}
	}
	return p
}

// Needs returns the definition of the kind, and what the function reads.
func (p part) Needs() (kube.Needs, error) { return p.needs, p.err }

// Start waits for the end of the program: the program serves all webhooks together.
func (p part) Start(ctx context.Context, _ *controller.Runtime) error {
	<-ctx.Done()
	return nil
}

// FeatureName returns the name of the feature that serves the webhooks: see [feature.Bringer].
func (part) FeatureName() string { return calls.Name }

// NewFeature returns the feature that serves the webhooks: see [feature.Bringer].
func (part) NewFeature() feature.Feature { return calls.New() }

// HandlerName returns the name of the handler of all webhooks: see [calls.Source].
func (part) HandlerName() string { return "operator/webhook" }

// NewHandler returns the handler of all webhooks of a program: see [calls.Source].
func (part) NewHandler(p *feature.Program) (calls.Handler, error) {
	h := &handler{watched: p.Watched}
	for _, each := range p.Parts {
		if w, ok := each.(part); ok && w.err == nil {
			h.webhooks = append(h.webhooks, w.function)
		}
	}
	return h, admission.CheckDuplicates(h.webhooks)
}

// Call describes the request of a user that a function of this package is called about.
type Call struct {
	User User
	// Operation is CREATE, UPDATE or DELETE.
	Operation string
	// DryRun is true if nothing will be stored.
	DryRun bool
	// Subresource is the subresource of the request, such as scale or eviction. It is empty for the object itself.
	Subresource string
}

// User is who made a request, as the API server has authenticated it.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// CallOf returns the request that ctx belongs to. ctx is the context of a function of this package. For
// another context CallOf returns the zero Call.
func CallOf(ctx context.Context) Call {
	c := admission.CallOf(ctx)
	return Call{User: User(c.User), Operation: c.Operation, DryRun: c.DryRun, Subresource: c.Subresource}
}

// Warn shows a text to the user whose request ctx belongs to, as kubectl shows warnings. ctx is the context of a
// function of this package. The text is cut to 256 characters, and all texts of a call are cut to 4,096
// characters together (the bounds of API servers). For another context Warn does nothing.
func Warn(ctx context.Context, text string) { admission.Warn(ctx, text) }
