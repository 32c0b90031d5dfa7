package children

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/controller/internal/owned"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/readiness"
	"github.com/yare-go/yare/kube/wire"
)

// manyDeletions is how many deletions of one call are no event yet.
const manyDeletions = 10

// isDataKind reports whether only [Set.PruneData] deletes objects of a kind.
func isDataKind(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return slices.Contains([]string{"PersistentVolumeClaim", "PersistentVolume", "Secret", "Namespace"}, kind.Kind)
	case "apiextensions.k8s.io":
		return kind.Kind == "CustomResourceDefinition"
	}
	return false
}

// pruning deletes the children of one call that its set does not declare any more.
//
// For example, the set "web" of the WebApp with uid 7 has declared the ConfigMaps a and b, and now declares b alone. The
// cache shows a with the label web.7. So the ConfigMaps are listed live. The live a has uid 8 and version 90, and is a
// child of uid 7 with fields that this manager has applied. The live WebApp has uid 7 and the generation that the call
// was given. So a is deleted if it still has uid 8 and version 90.
type pruning struct {
	set        Set
	client     *kube.Client
	owner      kube.Object
	answers    []kube.Object
	controller *owned.Controller
	log        *slog.Logger
	// declared and uids identify the declared children. A kind that has two groups has one uid.
	declared map[identity]bool
	uids     map[types.UID]bool
}

// newPruning returns the pruning of a call of set that the server has answered with answers.
func newPruning(ctx context.Context, set Set, c *kube.Client, owner kube.Object, answers []kube.Object) *pruning {
	p := &pruning{
		set: set, client: c, owner: owner, answers: answers, controller: owned.From(ctx),
		log:      controller.Log(ctx).With("set", set.Name, "owner", ident.Quoted(owner.GetNamespace(), owner.GetName())),
		declared: make(map[identity]bool, len(answers)), uids: make(map[types.UID]bool, len(answers)),
	}
	for _, answer := range answers {
		p.declared[identityOf(answer)], p.uids[answer.GetUID()] = true, true
	}
	return p
}

// leftover is a child that the call has not declared.
type leftover struct {
	kind owned.Kind
	*metav1.PartialObjectMetadata
}

func (l leftover) String() string {
	return l.kind.Resource.Kind + " " + ident.Quoted(l.Namespace, l.Name)
}

// run deletes what is left over.
func (p *pruning) run(ctx context.Context) error {
	kinds, err := p.kinds(ctx)
	if err != nil {
		return p.wrap(err)
	}
	// Mostly nothing is left over, and the cache knows.
	left, err := p.leftovers(ctx, p.client, kinds)
	if err != nil {
		return p.wrap(err)
	}
	p.reportWithoutSet(left)
	left = p.candidates(left)
	switch {
	case len(left) == 0 || p.isWaiting():
		return nil
	case len(p.answers) == 0 && !p.set.AllowEmpty:
		p.report("a set is empty, and nothing is deleted: set AllowEmpty of children.Set if it may be empty", left)
		return nil
	}
	kinds = slices.DeleteFunc(kinds, func(k owned.Kind) bool {
		return !slices.ContainsFunc(left, func(l leftover) bool { return l.kind.Resource == k.Resource })
	})
	if left, err = p.leftovers(ctx, p.client.Live(), kinds); err != nil {
		return p.wrap(err)
	}
	if left = p.candidates(left); len(left) == 0 {
		return nil
	}
	if isCurrent, err := p.isOwnerCurrent(ctx); err != nil || !isCurrent {
		return p.wrap(err)
	}
	p.announce(left)
	for _, l := range left {
		if err := p.delete(ctx, l); err != nil {
			return p.wrap(err)
		}
	}
	return nil
}

// wrap returns err as an error of the pruning. It is nil if err is nil.
func (p *pruning) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("prune the set %q of %s: %w", p.set.Name, ident.Quoted(p.owner.GetNamespace(), p.owner.GetName()), err)
}

// kinds returns the kinds that can have children of the set.
func (p *pruning) kinds(ctx context.Context) ([]owned.Kind, error) {
	namespace := p.owner.GetNamespace()
	kinds := slices.Clone(p.controller.Kinds)
	if namespace != "" { // the children are in the namespace of their owner
		kinds = slices.DeleteFunc(kinds, func(k owned.Kind) bool {
			return k.Resource.ClusterScoped || len(k.Namespaces) > 0 && !slices.Contains(k.Namespaces, namespace)
		})
	}
	for _, obj := range slices.Concat(p.answers, p.set.FormerKinds) {
		kind := kindOf(obj)
		if slices.ContainsFunc(kinds, func(k owned.Kind) bool { return k.Resource.GroupKind() == kind }) {
			continue
		}
		r, isServed, err := resourceOf(ctx, p.client, obj)
		if err != nil {
			return nil, err
		}
		if isServed && !(r.ClusterScoped && namespace != "") {
			kinds = append(kinds, owned.Kind{Resource: r})
		}
	}
	return kinds, nil
}

// resourceOf returns the resource of the kind of obj. It reports false if the server does not serve the kind.
func resourceOf(ctx context.Context, c *kube.Client, obj kube.Object) (r wire.Resource, isServed bool, err error) {
	if t, err := kube.TypeOfObject(obj); err == nil {
		return t.Resource, true, nil
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	resources, err := wire.Discover(ctx, c, kind.GroupVersion())
	for _, r := range resources {
		if r.Kind == kind.Kind {
			return r, true, nil
		}
	}
	return wire.Resource{}, false, err
}

// leftovers returns the children of kinds that are controlled by the owner, were applied by the field manager of the
// client, and are neither declared nor being deleted. c decides whether the cache may answer.
func (p *pruning) leftovers(ctx context.Context, c *kube.Client, kinds []owned.Kind) (left []leftover, err error) {
	for _, kind := range kinds {
		client := c
		if len(kind.Namespaces) > 0 {
			client = client.InNamespaces(kind.Namespaces...)
		}
		if kind.IsPartial {
			client = client.Live()
		}
		namespace := p.owner.GetNamespace()
		all, err := kube.Metadata(client, kind.Resource, namespace).List(ctx, kube.OwnerIs(p.owner))
		if kube.IsNoResource(err) {
			continue // there are no objects of a kind that is not served
		}
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if l := (leftover{kind, o}); p.isLeftOver(l) {
				left = append(left, l)
			}
		}
	}
	return left, nil
}

// isLeftOver reports whether the call has not declared a child, although this field manager has applied it.
func (p *pruning) isLeftOver(l leftover) bool {
	id := identity{l.kind.Resource.GroupKind(), l.Namespace, l.Name}
	owner := metav1.GetControllerOfNoCopy(l)
	return owner != nil && owner.UID == p.owner.GetUID() && l.DeletionTimestamp == nil && !p.declared[id] && !p.uids[l.UID] &&
		slices.ContainsFunc(l.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == p.client.FieldManager() && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
		})
}

// candidates returns the leftovers that belong to the set and may be deleted. It logs what stays because it holds data.
func (p *pruning) candidates(left []leftover) []leftover {
	var data, others []leftover
	for _, l := range left {
		switch {
		case l.Labels[setLabel] != p.set.label(p.owner):
		case isDataKind(l.kind.Resource.GroupKind()) && !p.set.PruneData:
			data = append(data, l)
		default:
			others = append(others, l)
		}
	}
	p.report("children that hold data are not deleted: set PruneData of children.Set if they may be", data)
	return others
}

// reportWithoutSet logs the leftovers that belong to no set.
func (p *pruning) reportWithoutSet(left []leftover) {
	var others []leftover
	for _, l := range left {
		if _, hasSet := l.Labels[setLabel]; !hasSet {
			others = append(others, l)
		}
	}
	p.report("children that were applied without a set are not deleted: delete them by hand if no release declares them", others)
}

// report logs a text about children, unless it was logged before. It logs nothing if there are no children.
func (p *pruning) report(text string, children []leftover) {
	if len(children) > 0 && p.controller.MarkReported(fmt.Sprint(text, p.set.label(p.owner), namesOf(children))) {
		p.log.Info(text, "children", namesOf(children))
	}
}

// isWaiting reports whether the pruning waits until the declared children are ready.
func (p *pruning) isWaiting() bool {
	return p.set.UntilReady && slices.ContainsFunc(p.answers, func(answer kube.Object) bool {
		state := readiness.Of(answer)
		if state.State == readiness.Ready {
			return false
		}
		p.log.Debug("nothing is pruned before all children are ready", "child", answer.GetName(), "reason", state.Reason)
		return true
	})
}

// isOwnerCurrent reports whether the live owner is the object that the call was given.
func (p *pruning) isOwnerCurrent(ctx context.Context) (bool, error) {
	r, _, err := resourceOf(ctx, p.client, p.owner)
	if err != nil {
		return false, err
	}
	live, err := kube.Metadata(p.client.Live(), r, p.owner.GetNamespace()).Get(ctx, p.owner.GetName())
	if kube.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	isCurrent := live.UID == p.owner.GetUID() && live.DeletionTimestamp == nil && live.Generation == p.owner.GetGeneration()
	if live.Generation == 0 { // a kind without generations
		isCurrent = isCurrent && live.ResourceVersion == p.owner.GetResourceVersion()
	}
	if !isCurrent {
		p.log.Debug("nothing is pruned, because the owner has changed since it was read, or is being deleted")
	}
	return isCurrent, nil
}

// announce logs what will be deleted. It adds an event about the owner if that is much.
func (p *pruning) announce(left []leftover) {
	isMuch := len(left) > manyDeletions || slices.ContainsFunc(left, func(l leftover) bool {
		return !slices.ContainsFunc(p.answers, func(answer kube.Object) bool {
			return kindOf(answer) == l.kind.Resource.GroupKind()
		})
	})
	level, names := slog.LevelInfo, namesOf(left)
	if isMuch {
		level = slog.LevelWarn
		if p.controller.Events != nil {
			p.controller.Events.Warning(p.owner, "ChildrenNotDeclared", "Prune",
				"deletes %d children that the set %s does not declare any more: %s", len(left), p.set.Name, strings.Join(names, ", "))
		}
	}
	p.log.Log(context.Background(), level, "deletes children that the set does not declare any more", "children", names)
}

// delete deletes the child of exactly this version.
func (p *pruning) delete(ctx context.Context, l leftover) error {
	r := l.kind.Resource
	err := kube.IgnoreNotFound(kube.Metadata(p.client, r, l.Namespace).Delete(ctx, l.Name, kube.RequireUID(l.UID),
		kube.RequireResourceVersion(l.ResourceVersion), kube.Propagation(metav1.DeletePropagationBackground)))
	if kube.IsForbidden(err) {
		err = fmt.Errorf("%w: if the program lacks the verb delete for %s, declare it by controller.WriteVerbs in controller.Owns, or by controller.Writes",
			err, r)
	}
	return err
}

// namesOf returns the kinds and names of children.
func namesOf(children []leftover) []string {
	names := make([]string, 0, len(children))
	for _, l := range children {
		names = append(names, l.String())
	}
	return names
}
