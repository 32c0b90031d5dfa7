package kube

import (
	"context"
	"reflect"

	"github.com/yare-go/yare/kube/wire"
)

// Apply declares the fields of o in its namespace, and returns the live object: see [API.Apply]. o is built anew each
// time: an object that was read is refused. The type of o is a pointer to an object, or an interface. So one call
// serves children of several kinds:
//
//	for _, child := range []kube.Object{deployment, service} {
//		if _, err := kube.Apply(ctx, c, kube.OwnedBy(owner, child)); err != nil {
//			return controller.Done(), err
//		}
//	}
//
// The result has the type of the value. For an unstructured.Unstructured, discovery finds the resource of its
// apiVersion and kind, once for each kind. A kind that the server does not have is an error before the apply.
func Apply[O Object](ctx context.Context, c *Client, o O, options ...ApplyOption) (O, error) {
	return writeObject(ctx, c, wire.VerbPatch, o,
		func(t target) (*wire.Request, error) { return c.guardedApplyRequest(ctx, t, o, options) })
}

// Create creates o in its namespace, and returns the object that the server stored: see [API.Create]. The type of o is
// as for [Apply].
func Create[O Object](ctx context.Context, c *Client, o O, options ...WriteOption) (O, error) {
	return writeObject(ctx, c, wire.VerbCreate, o,
		func(t target) (*wire.Request, error) { return t.createRequest(c, o, options) })
}

// writeObject sends the request that request makes for o, and returns the answer. The request is for the target of o.
func writeObject[O Object](
	ctx context.Context, c *Client, verb wire.Verb, o O, request func(target) (*wire.Request, error),
) (O, error) {
	answer, err := sendWrite(ctx, c, verb, o, request)
	if err != nil {
		var none O
		return none, err
	}
	return answer.(O), nil
}

// sendWrite sends the request that request makes for obj, and returns the answer. It has no type parameter, so the
// compiler compiles it once.
func sendWrite(
	ctx context.Context, c *Client, verb wire.Verb, obj Object, request func(target) (*wire.Request, error),
) (Object, error) {
	t, err := c.targetOf(ctx, verb, obj)
	if err != nil {
		return nil, err
	}
	t = t.in(c, "")
	r, err := request(t)
	if err != nil {
		return nil, err
	}
	answer := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(Object)
	if err := t.decoder(c).send(ctx, c, r, answer); err != nil {
		if verb == wire.VerbPatch {
			return nil, c.applyError(t.resource, obj, err)
		}
		return nil, c.forgetUnservedKind(t.resource, addObjectName(err, obj))
	}
	return answer, nil
}

// addObjectName adds the name of obj to err, if the request of err has the name in its body only. It returns err.
func addObjectName(err error, obj Object) error {
	if e, ok := AsError(err); ok && e.Ref.Name == "" {
		e.Ref.Name = obj.GetName()
	}
	return err
}
