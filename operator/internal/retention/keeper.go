// Package retention keeps the permissions of a program in a namespace while objects there have finalizers of the
// program.
//
// A program that watches some namespaces has a Role and a RoleBinding in each of them. When such a namespace is
// deleted, the server deletes both together with the objects, in no certain order. Without its permissions, the program
// can never remove its finalizers, and the namespace never ends. So a [Keeper] puts a finalizer on the Role and the
// RoleBinding before the first object of the namespace gets one. It removes this finalizer after the last object. A
// Role that is being deleted still grants.
//
// Example: the program one in the namespace ops watches the namespace shop.
//
//	apps shop/web is created           the Role and the RoleBinding shop/one.ops get the finalizer, and then shop/web gets its own
//	the namespace shop is deleted      the three objects are being deleted, and wait for their finalizers
//	the cleanup of shop/web has ended  shop/web loses its finalizer, and is gone
//	no other object has a finalizer    the RoleBinding and the Role lose theirs, and are gone, and so is the namespace
//
// The permissions for the Roles and the RoleBindings of this one name come from the ClusterRole of the program:
// whichever of the two goes first, takes the permissions in the namespace with it.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/watch"
)

const (
	// settleDelay is the time from a removal of a finalizer to the search for other finalizers in the namespace.
	settleDelay = time.Second
	// settlePeriod is the least time between two searches in a namespace whose Role is not being deleted.
	settlePeriod = 10 * time.Second
	// goingPeriod is the time between two searches in a namespace whose Role is being deleted. Somebody may have removed
	// finalizers by hand.
	goingPeriod = time.Minute
	// absencePeriod is how long the keeper believes that there is no Role to retain.
	absencePeriod = 10 * time.Minute
	// lastTimeout is how long the searches at the end of the program may take.
	lastTimeout = 2 * time.Second
)

// Config is what a [Keeper] needs.
type Config struct {
	// Client has the account of the program, and is not narrowed to namespaces.
	Client *kube.Client
	Log    *slog.Logger
	// Namespaces are those in which objects can have Finalizers, and in which the program has a Role.
	Namespaces []string
	// Reconciled are the resources whose objects can have Finalizers.
	Reconciled []wire.Resource
	Finalizers []string
	// Command is the command line of the program, for texts.
	Command string
}

var _ access.Retainer = (*Keeper)(nil)

// Keeper keeps the permissions of a program: see the package. Its methods can be used concurrently.
type Keeper struct {
	Config
	// due receives a value when a search may be due.
	due chan struct{}

	mu sync.Mutex
	// installation is the installation of the program. It is nil before it is known.
	installation *manifests.Installation
	places       map[string]*place
}

// place is a namespace with a Role of the program.
type place struct {
	// token is in the channel while nobody changes the finalizers of the Role and the RoleBinding. Whoever has taken the
	// token may use the following fields.
	token chan struct{}
	// isRetained is true while both have the finalizer, as far as is known.
	isRetained bool
	// absentUntil is the time until which there is nothing to retain.
	absentUntil time.Time

	// writing counts the reconciles that may be adding a finalizer to an object. It grows only with the token.
	writing atomic.Int64

	// The mutex of the keeper guards the following fields.

	// dueAt is when the next search is due, or zero. searchedAt is when the last search began.
	dueAt, searchedAt time.Time
	// goingSince is when the keeper has seen that the object of each of resources is being deleted. It is zero for another
	// object.
	goingSince [2]time.Time
	// isGoingLogged is true once the log has that line.
	isGoingLogged bool
	// logged is the last problem that was logged.
	logged string
}

// New returns a keeper.
func New(c Config) *Keeper {
	return &Keeper{Config: c, due: make(chan struct{}, 1), places: make(map[string]*place)}
}

// placeOf returns the place of a namespace.
func (k *Keeper) placeOf(namespace string) *place {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.places[namespace]
	if p == nil {
		p = &place{token: make(chan struct{}, 1)}
		p.token <- struct{}{}
		k.places[namespace] = p
	}
	return p
}

// take takes the token of p.
func (p *place) take(ctx context.Context) error {
	select {
	case <-p.token:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *place) putBack() { p.token <- struct{}{} }

// recordWritten records that a reconcile adds no finalizer any more.
func (p *place) recordWritten() { p.writing.Add(-1) }

// Retain implements [access.Retainer].
func (k *Keeper) Retain(ctx context.Context, namespace string) (written func(), err error) {
	if !slices.Contains(k.Namespaces, namespace) {
		return func() {}, nil
	}
	p := k.placeOf(namespace)
	if err := p.take(ctx); err != nil {
		return nil, err
	}
	defer p.putBack()
	if !p.isRetained && !time.Now().Before(p.absentUntil) {
		if err := k.add(ctx, namespace, p); err != nil {
			return nil, fmt.Errorf("retain the permissions in the namespace %s: %w", namespace, err)
		}
	}
	p.writing.Add(1)
	return p.recordWritten, nil
}

// RecordRemoval implements [access.Retainer].
func (k *Keeper) RecordRemoval(namespace string) {
	if slices.Contains(k.Namespaces, namespace) {
		k.schedule(namespace, settleDelay)
	}
}

// schedule makes a search in a namespace due after a while, unless one is due before.
func (k *Keeper) schedule(namespace string, after time.Duration) {
	p := k.placeOf(namespace)
	k.mu.Lock()
	defer k.mu.Unlock()
	at := time.Now().Add(after)
	if earliest := p.searchedAt.Add(settlePeriod); !p.isGoing() && at.Before(earliest) {
		at = earliest
	}
	if p.dueAt.IsZero() || at.Before(p.dueAt) {
		p.dueAt = at
		select {
		case k.due <- struct{}{}:
		default:
		}
	}
}

// Run follows the Roles and the RoleBindings until ctx ends, and removes their finalizers when no object needs them. It
// is for the leader.
func (k *Keeper) Run(ctx context.Context) {
	i, isKnown := k.waitForInstallation(ctx)
	if !isKnown {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	for index, r := range resources() {
		running.Go(func() {
			for event, err := range watch.Events(ctx, kube.Metadata(k.Client, r, ""), kube.Field("metadata.name", roleName(i))) {
				k.observe(index, event, err)
			}
		})
	}
	for ctx.Err() == nil {
		namespace, wait := k.nextDue()
		if namespace != "" {
			k.settle(ctx, namespace)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.due:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	// Objects that the program cleaned up at its end must not keep the Role of their namespace.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	for _, namespace := range k.allDue() {
		k.settle(last, namespace)
	}
}

// nextDue returns a namespace in which a search is due. If there is none, it returns how long nothing will be due.
func (k *Keeper) nextDue() (namespace string, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	wait = time.Hour
	for name, p := range k.places {
		switch {
		case p.dueAt.IsZero():
		case !p.dueAt.After(now):
			p.dueAt, p.searchedAt = time.Time{}, now
			return name, 0
		default:
			wait = min(wait, p.dueAt.Sub(now))
		}
	}
	return "", wait
}

// allDue returns all namespaces in which a search is planned.
func (k *Keeper) allDue() (namespaces []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, p := range k.places {
		if !p.dueAt.IsZero() {
			namespaces = append(namespaces, name)
		}
	}
	return namespaces
}

// observe records an event of the resource with an index in resources.
func (k *Keeper) observe(index int, event watch.Event[metav1.PartialObjectMetadata], err error) {
	var o *metav1.PartialObjectMetadata
	isGone := false
	switch e := event.(type) {
	case watch.Added[metav1.PartialObjectMetadata]:
		o = e.Object
	case watch.Modified[metav1.PartialObjectMetadata]:
		o = e.Object
	case watch.Deleted[metav1.PartialObjectMetadata]:
		o, isGone = e.Object, true
	default:
		if err != nil {
			k.Log.Debug("cannot follow the roles of the program", "error", err)
		}
		return
	}
	p := k.placeOf(o.Namespace)
	k.mu.Lock()
	switch isGoing := o.DeletionTimestamp != nil && !isGone; {
	case !isGoing:
		p.goingSince[index] = time.Time{}
		p.isGoingLogged = p.isGoingLogged && p.isGoing()
	case p.goingSince[index].IsZero():
		p.goingSince[index] = time.Now()
	}
	k.mu.Unlock()
	// The search also finds whether somebody has removed a finalizer that is needed.
	k.schedule(o.Namespace, settleDelay)
}

// settle searches for objects with finalizers of the program in a namespace. It adds the finalizer of the Role and the
// RoleBinding if there is such an object, and removes it otherwise.
func (k *Keeper) settle(ctx context.Context, namespace string) {
	p := k.placeOf(namespace)
	if p.take(ctx) != nil {
		return
	}
	defer p.putBack()
	if p.writing.Load() > 0 {
		k.schedule(namespace, settlePeriod)
		return
	}
	found, err := k.search(ctx, namespace)
	switch {
	case kube.IsForbidden(err):
		err = k.checkReleased(ctx, namespace, p, err)
	case err != nil:
	case found == nil:
		if err = k.remove(ctx, namespace); err == nil {
			p.isRetained = false
		}
	case slices.Contains(k.Namespaces, namespace):
		if !time.Now().Before(p.absentUntil) {
			err = k.add(ctx, namespace, p)
		}
	default:
		err = fmt.Errorf("%s has a finalizer of the program, which does not watch the namespace any more: watch it until its objects are deleted, or run %s uninstall --remove-finalizers", found, k.Command)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	if text != "" && text != p.logged {
		k.Log.Warn("the permissions of the program in a namespace are not retained as they should be",
			"namespace", namespace, "error", text)
	}
	p.logged = text
	if found != nil && p.isGoing() {
		k.reportGoing(namespace, p, found)
	}
	if (text != "" || p.isGoing()) && p.dueAt.IsZero() {
		p.dueAt = time.Now().Add(settlePeriod)
		if p.isGoingLogged {
			p.dueAt = time.Now().Add(goingPeriod)
		}
	}
}

// isGoing reports whether the Role or the RoleBinding is being deleted. The caller has locked the keeper.
func (p *place) isGoing() bool { return p.goingSince != [2]time.Time{} }

// reportGoing logs that a Role or a RoleBinding is being deleted, if its namespace seems to live: an object with a
// finalizer of the program is not being deleted some seconds later. The caller has locked the keeper.
func (k *Keeper) reportGoing(namespace string, p *place, found *clusterread.Object) {
	if p.isGoingLogged || found.Metadata.DeletionTimestamp != nil {
		return
	}
	var commands []string
	for index, r := range resources() {
		since := p.goingSince[index]
		if since.IsZero() {
			continue
		}
		if time.Since(since) < settlePeriod/2 {
			return
		}
		commands = append(commands, fmt.Sprintf(
			"kubectl patch %s --namespace %s %s --type=merge --patch '{\"metadata\":{\"finalizers\":null}}'", r, namespace,
			roleName(k.installation)))
	}
	p.isGoingLogged = true
	k.Log.Warn("the role of the program in a namespace is being deleted, and goes with the last object that has a finalizer of the program",
		"namespace", namespace, "object", found.String(),
		"do", "if the program is to stay, apply the manifests again once the role is gone; to let it go at once run "+
			strings.Join(commands, " && "))
}

// checkReleased returns nil if neither the Role nor the RoleBinding of a namespace has the finalizer: the program has
// lost its permissions with them, as it should. Otherwise it returns err, the answer to a search for objects.
func (k *Keeper) checkReleased(ctx context.Context, namespace string, p *place, err error) error {
	i, installationErr := k.findInstallation(ctx)
	if installationErr != nil {
		return installationErr
	}
	for _, r := range resources() {
		o, exists, findErr := clusterread.Find(ctx, k.Client, r, namespace, roleName(i))
		switch {
		case findErr != nil:
			return findErr
		case exists && o.HasFinalizer([]string{manifests.RoleFinalizer}):
			return fmt.Errorf("%s has the finalizer %s, and whether an object needs it is not known: apply the manifests again, or remove the finalizer: %w", o, manifests.RoleFinalizer, err)
		}
	}
	p.isRetained = false
	return nil
}

// search returns an object with a finalizer of the program in a namespace, or nil.
func (k *Keeper) search(ctx context.Context, namespace string) (*clusterread.Object, error) {
	for _, r := range k.Reconciled {
		s := wire.Stream{Resource: r, Namespace: namespace, Representation: wire.MetadataOnly}
		found, err := clusterread.First(ctx, k.Client, s,
			func(o *clusterread.Object) bool { return o.HasFinalizer(k.Finalizers) })
		if found != nil || err != nil && !kube.IsNoResource(err) {
			return found, err
		}
	}
	return nil, nil
}

// add adds the finalizer to the Role and the RoleBinding of a namespace. It does nothing if the program has neither, or
// has no permission: other rules may grant what the Role would.
func (k *Keeper) add(ctx context.Context, namespace string, p *place) error {
	i, err := k.findInstallation(ctx)
	if err != nil {
		return err
	}
	p.isRetained = i.Namespace != "" && i.Namespace != namespace
	for _, r := range resources() {
		if !p.isRetained {
			break
		}
		o, exists, err := k.edit(ctx, r, namespace, roleName(
			i), func(o *clusterread.Object) (finalizers []string, err error) {
			if !o.HasFinalizer([]string{manifests.RoleFinalizer}) && o.Metadata.DeletionTimestamp != nil {
				return nil, fmt.Errorf("%s is being deleted: apply the manifests again if the namespace stays", o)
			}
			return appendMissing(o.Metadata.Finalizers, manifests.RoleFinalizer), nil
		})
		switch {
		case kube.IsForbidden(err):
			k.Log.Warn("the namespace could never end if it were deleted, because the program may not keep its permissions there: apply the manifests again", "namespace", namespace, "error", err)
			p.isRetained = false
		case err != nil:
			p.isRetained = false
			return err
		case !exists:
			k.Log.Debug("there is no role to retain", "namespace", namespace, "object", o)
			p.isRetained = false
		}
	}
	if !p.isRetained {
		p.absentUntil = time.Now().Add(absencePeriod)
	}
	return nil
}

// remove removes the finalizer from the RoleBinding and the Role of a namespace.
func (k *Keeper) remove(ctx context.Context, namespace string) error {
	i, err := k.findInstallation(ctx)
	if err != nil || i.Namespace == "" {
		return err
	}
	var errs []error
	for _, r := range resources() {
		_, _, err := k.edit(ctx, r, namespace, roleName(i), func(o *clusterread.Object) ([]string, error) {
			return slices.DeleteFunc(slices.Clone(o.Metadata.Finalizers),
				func(name string) bool { return name == manifests.RoleFinalizer }), nil
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// editAttempts is how often an edit is tried when others change the object at the same time.
const editAttempts = 5

// edit sets the finalizers of an object to those that decide returns. It sends nothing if they are right.
func (k *Keeper) edit(
	ctx context.Context, r wire.Resource, namespace, name string, decide func(*clusterread.Object) ([]string, error),
) (o *clusterread.Object, exists bool, err error) {
	for attempt := 1; ; attempt++ {
		o, exists, err = clusterread.Find(ctx, k.Client, r, namespace, name)
		if err != nil || !exists {
			return o, exists, err
		}
		finalizers, err := decide(o)
		if err != nil || slices.Equal(finalizers, o.Metadata.Finalizers) {
			return o, true, err
		}
		err = clusterread.SetFinalizers(ctx, k.Client, o, finalizers)
		if err == nil || !kube.IsConflict(err) || attempt == editAttempts {
			return o, true, err
		}
	}
}

// appendMissing returns names with a name, which stays where it is if names has it.
func appendMissing(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(slices.Clone(names), name)
}

// roleName returns the name of the Roles and the RoleBindings in watched namespaces.
func roleName(i *manifests.Installation) string { return manifests.ClusterName(i.Name, i.Namespace) }

// resources returns the resources of RoleBindings and Roles.
func resources() [2]wire.Resource {
	r := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		Plural:           "rolebindings",
	}
	both := [2]wire.Resource{r, r}
	both[1].Kind, both[1].Plural = "Role", "roles"
	return both
}

// Rules returns the permissions that a keeper needs, in the whole cluster, for an installation with a Role in each of
// these namespaces. Without namespaces it returns none.
func Rules(i manifests.Installation, namespaces []string) []kube.PolicyRule {
	if len(namespaces) == 0 {
		return nil
	}
	return []kube.PolicyRule{{
		APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"},
		ResourceNames: []string{roleName(&i)}, Verbs: []string{"get", "list", "watch", "patch"},
	}}
}

// Namespaces returns the namespaces in which the objects of a part with finalizers live, and in which the part has its
// permissions by a Role. watched are those that the program watches. own is the namespace of the installation, which is
// not among the results: its end is the end of the program.
func Namespaces(needs []kube.Needs, watched []string, own string) []string {
	found := make(map[string]bool)
	for _, n := range needs {
		for _, a := range n.Access {
			isReconciled := slices.ContainsFunc(n.Reconciles, func(r wire.Resource) bool { return r == a.Resource })
			if len(n.Finalizers) == 0 || !isReconciled || a.Resource.ClusterScoped {
				continue
			}
			namespaces := a.Namespaces
			if len(namespaces) == 0 && !a.OwnNamespace {
				namespaces = watched
			}
			for _, name := range namespaces {
				found[name] = true
			}
		}
	}
	delete(found, own)
	return slices.Sorted(maps.Keys(found))
}

// waitForInstallation waits until the installation of the program is known. It reports false if the program has none,
// or ctx has ended.
func (k *Keeper) waitForInstallation(ctx context.Context) (i *manifests.Installation, isKnown bool) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		i, err := k.findInstallation(ctx)
		if err == nil {
			return i, i.Namespace != ""
		}
		if clock.SleepReal(ctx, wait) != nil {
			return nil, false
		}
	}
}

// findInstallation returns the installation of the program. The installation has no namespace if the account of the
// program is no ServiceAccount, such as that of a developer. A program may ask about itself without a permission.
func (k *Keeper) findInstallation(ctx context.Context) (*manifests.Installation, error) {
	k.mu.Lock()
	known := k.installation
	k.mu.Unlock()
	if known != nil {
		return known, nil
	}
	i, err := installationOf(ctx, k.Client)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.installation = i
	return i, nil
}

// installationOf returns the installation whose ServiceAccount is that of the client.
func installationOf(ctx context.Context, client *kube.Client) (*manifests.Installation, error) {
	response, err := client.Do(ctx, &wire.Request{
		Verb: wire.VerbCreate, Body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`),
		Resource: wire.Resource{
			GroupVersionKind: schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview"},
			Plural:           "selfsubjectreviews", ClusterScoped: true,
		},
	})
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	switch {
	case kube.IsNoResource(err), kube.IsForbidden(err): // an administrator has taken away what all accounts may do
		return new(manifests.Installation), nil
	case err == nil:
		err = kube.Unmarshal(response.Body, &review)
	}
	if err != nil {
		return nil, fmt.Errorf("find the account of the program: %w", err)
	}
	account, isAccount := strings.CutPrefix(review.Status.UserInfo.Username, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	if !isAccount {
		return new(manifests.Installation), nil
	}
	return &manifests.Installation{Name: name, Namespace: namespace}, nil
}
