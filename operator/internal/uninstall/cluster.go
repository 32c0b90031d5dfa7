package uninstall

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// cluster reads and deletes objects of all kinds, as metadata.
type cluster struct {
	client *kube.Client
	// out gets a line for each object that is removed.
	out io.Writer
	// isDryRun is true if remove only writes what it would remove.
	isDryRun bool
}

// period is the time between two looks at what is being deleted.
const period = 500 * time.Millisecond

// get reads an object. into receives what the representation has of the object.
func (c cluster) get(ctx context.Context, r kube.Resource, namespace, name string, representation kube.Representation, into any) error {
	response, err := c.client.Do(ctx, &kube.Request{
		Verb: kube.VerbGet, Resource: r, Namespace: namespace, Name: name, Representation: representation,
	})
	if err != nil {
		return err
	}
	if err := kube.Unmarshal(response.Body, into); err != nil {
		return fmt.Errorf("decode %s %s: %w", r, name, err)
	}
	return nil
}

// find returns an object. It reports false if the object does not exist.
func (c cluster) find(ctx context.Context, r kube.Resource, namespace, name string) (o object, exists bool, err error) {
	o.resource = r
	err = c.get(ctx, r, namespace, name, kube.MetadataOnly, &o)
	if kube.IsNotFound(err) || kube.IsNoResource(err) {
		return o, false, nil
	}
	return o, err == nil, err
}

// list returns the objects of a stream. A resource that the server does not serve or cannot list has no objects.
func (c cluster) list(ctx context.Context, s kube.Stream) (all []object, err error) {
	s.Representation = kube.MetadataOnly
	for page, err := range s.Pages(ctx, c.client) {
		if e, ok := kube.AsError(err); ok && (kube.IsNoResource(err) || e.Code == 405) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			o := object{resource: s.Resource}
			if err := kube.Unmarshal(item, &o); err != nil {
				return nil, fmt.Errorf("decode the metadata of an object of %s: %w", s, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// listKinds returns the objects of kinds in these namespaces, or in all namespaces if there are none, and
// the objects of kinds outside of namespaces.
func (c cluster) listKinds(ctx context.Context, kinds []kube.Resource, in []string) (all []object, err error) {
	for _, r := range kinds {
		namespaces := in
		if r.ClusterScoped || len(in) == 0 {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			found, err := c.list(ctx, kube.Stream{Resource: r, Namespace: namespace})
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// remove deletes an object. It returns when the object, and the Pods of a Deployment, are gone.
func (c cluster) remove(ctx context.Context, o object) error {
	if c.isDryRun {
		fmt.Fprintf(c.out, "would delete %s\n", o)
		return nil
	}
	policy := metav1.DeletePropagationBackground
	if o.resource == deployments() {
		policy = metav1.DeletePropagationForeground
	}
	if err := c.delete(ctx, o, policy); err != nil {
		return err
	}
	for looks := 0; ; looks++ {
		now, exists, err := c.find(ctx, o.resource, o.Metadata.Namespace, o.Metadata.Name)
		if err != nil {
			return err
		}
		if !exists || now.Metadata.UID != o.Metadata.UID {
			fmt.Fprintf(c.out, "deleted %s\n", o)
			return nil
		}
		if looks > 0 && looks%20 == 0 {
			fmt.Fprintf(c.out, "waiting for the end of %s, with the finalizers %v\n", o, now.Metadata.Finalizers)
		}
		if err := clock.SleepReal(ctx, period); err != nil {
			return fmt.Errorf("wait for the end of %s: %w", o, err)
		}
	}
}

// delete asks the server to delete exactly this object.
func (c cluster) delete(ctx context.Context, o object, policy metav1.DeletionPropagation) error {
	body, err := kube.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &o.Metadata.UID},
		PropagationPolicy: &policy,
	})
	if err == nil {
		_, err = c.client.Do(ctx, &kube.Request{
			Verb: kube.VerbDelete, Resource: o.resource, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Body: body,
			Preconditions: kube.Preconditions{UID: o.Metadata.UID},
		})
	}
	return kube.IgnoreNotFound(err)
}
