package ctrl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// Manager returns a part of a program of yare that runs a manager of controller-runtime. setup adds the controllers, as
// main.go did between NewManager and Start:
//
//	//go:embed config/rbac/role.yaml
//	var role []byte
//
//	func main() {
//		operator.Main(ctrl.Manager("cronjob", role, manager.Options{Scheme: scheme}, func(mgr manager.Manager) error {
//			return (&CronJobReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
//		}))
//	}
//
// All requests of the manager, those of its API reader and its recorders too, are requests of the program: a replica
// that no longer leads sends none, and yare dev refuses those that role does not allow. The manager shares the streams
// of the cache with the other parts of the program.
//
// role is YAML with ClusterRoles and Roles, as controller-gen writes it. Its rules become permissions of the program.
// The rules of a Role hold in its namespace, or in that of the program if it names none.
//
// The program elects the leader, and serves probes and metrics. So options with LeaderElection are an error, and the
// addresses for probes and metrics are ignored. The manager starts on every replica, with its webhooks and caches. What
// needs the leader election there, such as its controllers, starts when the replica leads. The manager ends with the
// program. The namespaces of --watch-namespace are those of its cache, unless the options name others.
func Manager(name string, role []byte, o manager.Options, setup func(manager.Manager) error) operator.Part {
	p := managerPart{options: o, setup: setup}
	p.needs, p.err = needsOf(role)
	switch {
	case setup == nil:
		p.err = errors.Join(p.err, errors.New("the function that sets the manager up is nil"))
	case o.LeaderElection:
		p.err = errors.Join(p.err, errors.New("the options of the manager have LeaderElection: leave it out, because the flag --leader-elect elects the leader of the program"))
	}
	if p.err != nil {
		p.err = fmt.Errorf("the manager %s: %w", name, p.err)
	}
	p.Part = operator.Task(name, p.run)
	return p
}

// managerPart is a task with the permissions of a role.
type managerPart struct {
	operator.Part
	options manager.Options
	setup   func(manager.Manager) error
	needs   kube.Needs
	err     error
}

// Needs returns the permissions of the role.
func (p managerPart) Needs() (kube.Needs, error) {
	needs, err := p.Part.Needs()
	needs.Rules, needs.Access = append(needs.Rules, p.needs.Rules...), append(needs.Access, p.needs.Access...)
	needs.EveryReplica = true
	return needs, errors.Join(p.err, err)
}

// run runs the manager until ctx ends.
func (p managerPart) run(ctx context.Context, rt *controller.Runtime) error {
	bridge, o := forRuntime(rt), p.options
	o.NewCache, o.NewClient = bridge.NewCache, bridge.NewClient
	o.Metrics.BindAddress, o.HealthProbeBindAddress = "0", "0"
	if o.Logger.IsZero() {
		o.Logger = logr.FromSlogHandler(rt.Log.Handler())
	}
	logf.SetLogger(o.Logger) // the packages of controller-runtime, such as webhook, log by their own default
	if o.Cache.DefaultNamespaces == nil {
		o.Cache.DefaultNamespaces = namespacesOf(rt.Client)
	}
	o.LeaderElection, o.LeaderElectionResourceLockInterface = true, programLock{rt.WaitElected}
	mgr, err := manager.New(bridge.config(), o)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := p.setup(mgr); err != nil {
		return fmt.Errorf("set the manager up: %w", err)
	}
	return mgr.Start(ctx)
}

// namespacesOf returns the namespaces that a program watches, or nil for all.
func namespacesOf(c *kube.Client) map[string]ctrlcache.Config {
	if len(c.Namespaces()) == 0 {
		return nil
	}
	namespaces := make(map[string]ctrlcache.Config)
	for _, namespace := range c.Namespaces() {
		namespaces[namespace] = ctrlcache.Config{}
	}
	return namespaces
}

// programLock makes the election of the program that of a manager. The manager holds the lock from the moment when the
// program leads. A program that no longer leads ends, and its manager with it.
type programLock struct{ waitElected func(context.Context) error }

// Get waits until the program leads, and then reports that nobody holds the lock.
func (l programLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.waitElected(ctx) != nil { // the program ends
		return &resourcelock.LeaderElectionRecord{HolderIdentity: "another replica"}, []byte("{}"), nil
	}
	return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, l.Describe())
}

// Create returns nil: the manager holds the lock.
func (programLock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// Update returns nil: the manager still holds the lock.
func (programLock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// RecordEvent does nothing.
func (programLock) RecordEvent(string) {}

// Identity returns the name of the holder.
func (programLock) Identity() string { return "the leading replica of the program" }

// Describe returns the name of the lock for the log.
func (programLock) Describe() string { return "the election of the program" }

// needsOf returns the permissions of the ClusterRoles and Roles in a text.
func needsOf(role []byte) (needs kube.Needs, err error) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(role), 4096)
	for {
		var r rbacv1.Role // a ClusterRole has the same fields, and an aggregation
		switch err := documents.Decode(&r); {
		case errors.Is(err, io.EOF):
			return needs, nil
		case err != nil:
			return kube.Needs{}, fmt.Errorf("read the roles: %w", err)
		}
		switch {
		case r.Kind == "" && len(r.Rules) == 0: // an empty document
		case r.Kind == "ClusterRole":
			for _, rule := range r.Rules {
				needs.Rules = append(needs.Rules, kube.PolicyRule{
					APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs,
					ResourceNames: rule.ResourceNames, NonResourceURLs: rule.NonResourceURLs,
				})
			}
		case r.Kind == "Role":
			needs.Access = append(needs.Access, accessOf(r)...)
		default:
			return kube.Needs{}, fmt.Errorf("the roles have an object of the kind %q: give ClusterRoles and Roles alone", r.Kind)
		}
	}
}

// accessOf returns the permissions of a Role, one for each resource of a rule.
func accessOf(r rbacv1.Role) (access []kube.Access) {
	for _, rule := range r.Rules {
		var verbs []wire.Verb
		for _, verb := range rule.Verbs {
			verbs = append(verbs, wire.Verb(verb))
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				plural, subresource, _ := strings.Cut(resource, "/")
				a := kube.Access{Subresource: subresource, Verbs: verbs, Names: rule.ResourceNames, OwnNamespace: r.Namespace == ""}
				a.Resource = wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: group}, Plural: plural}
				if r.Namespace != "" {
					a.Namespaces = []string{r.Namespace}
				}
				access = append(access, a)
			}
		}
	}
	return access
}
