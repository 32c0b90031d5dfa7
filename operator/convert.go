package operator

import (
	"context"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/webhook/conversion"
)

// Convert returns a part by which the API server converts the objects of a kind between the versions A and B. toB fills
// b, which is new, from a. toA fills a, which is new, from b:
//
//	operator.Main(controller.New(reconcile), operator.Convert(toV2, toV1))
//
//	func toV2(a *v1.CronJob, b *v2.CronJob) { b.Spec.Minute, b.Spec.Hour = split(a.Spec.Schedule) }
//	func toV1(b *v2.CronJob, a *v1.CronJob) { a.Spec.Schedule = join(b.Spec.Minute, b.Spec.Hour) }
//
// No value is lost, whatever the functions do. What a version cannot express is kept in an annotation of the object
// whose key begins with versions.yare.dev/, and is put back when the object returns to its original version. An object
// that converts without loss has no such annotation. The metadata of the objects is copied: what a function does to the
// metadata has no effect.
//
// The result of a function must follow from its input alone: the same object is converted many times, by all replicas.
// Several calls run at once. A panic of a function is logged, and its object is delivered with the annotation
// versions.yare.dev/incomplete.
//
// The converters of a kind connect all its versions as a tree, also versions that are not served. Three versions have
// two converters. One Definition of the kind sets Storage. Controllers should use the storage version, because each
// object of another version costs a call. Every replica answers, also a standby. While no replica answers, requests in
// a version that is not the storage version fail, and so does the deletion of namespaces: see docs/guide/versions.md.
func Convert[A, B any, PA kube.DefinedObjectOf[A], PB kube.DefinedObjectOf[B]](
	toB func(a *A, b *B), toA func(b *B, a *A),
) Part {
	p := converterPart{step: conversion.NewStep[A, B, PA, PB](toB, toA), needs: kube.Needs{EveryReplica: true}}
	if p.step.Err() == nil {
		p.needs.Defines = []kube.Type{p.step.First, p.step.Second}
	}
	return p
}

// converterPart is a part of [Convert].
type converterPart struct {
	linkedWebhookCode
	linkedConversionCode
	linkedRoundTripCode
	step  *conversion.Step
	needs kube.Needs
}

// Needs returns the definitions of both versions.
func (p converterPart) Needs() (kube.Needs, error) { return p.needs, p.step.Err() }

// Start waits for the end of the program: the program serves all webhooks together.
func (p converterPart) Start(ctx context.Context, _ *controller.Runtime) error {
	<-ctx.Done()
	return nil
}

func (p converterPart) converter() *conversion.Step { return p.step }
