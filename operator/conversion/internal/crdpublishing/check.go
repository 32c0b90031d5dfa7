package crdpublishing

import (
	"context"
	"fmt"
	"slices"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// Check returns an error if the apply of a CustomResourceDefinition with these versions would make calls fail: another
// installation converts the objects, or nobody converts them yet. client is that of an administrator. firstStep is the
// command that installs the program without the CustomResourceDefinition.
//
// For example, the cluster has v1 only, and the program adds v2. In one step, each call in v2 would fail until the
// program has published its conversion. In two steps, the program publishes the conversion of the
// CustomResourceDefinition that has v1 only, and v2 comes afterwards.
//
// A version that the cluster has, and does not serve, takes one step: the program that runs knows the version, and
// publishes as soon as the version is served. It is the way back from row D of docs/guide/versions.md to row C.
func Check(
	ctx context.Context, client *kube.Client, name string, target configuration.Target, versions []crd.Version,
	firstStep string,
) error {
	d := newConvertedDefinition(name, client)
	state, err := d.Read(ctx, client)
	if err != nil {
		return fmt.Errorf("check the conversion of the %s: %w", d, err)
	}
	current := state.Object
	if !current.exists() {
		return nil // the program comes with its first version
	}
	if s := current.service(); current.isOfOtherService(target) {
		exists, err := d.hasNamespace(ctx, s.Namespace)
		if err != nil {
			return fmt.Errorf("check the conversion of the %s: find out whether the Namespace %s exists: %w",
				d, s.Namespace, err)
		}
		if exists {
			return fmt.Errorf("the installation in the Namespace %s converts the objects of the %s: apply the definition from that installation, and leave it out here with --without-definitions", s.Namespace, d)
		}
	}
	isPublished := current.service() != nil && !current.isOfOtherService(target) && len(current.bundle()) > 0
	for _, v := range versions {
		isKnown := slices.ContainsFunc(current.Spec.Versions, func(old version) bool { return old.Name == v.Name })
		if v.Served && !isKnown && !isPublished {
			return fmt.Errorf("the cluster does not serve the version %s of the %s yet, and nobody converts its objects: install the program first with %s, wait until all its replicas are ready, and then apply the definition", v.Name, d, firstStep)
		}
	}
	return nil
}
