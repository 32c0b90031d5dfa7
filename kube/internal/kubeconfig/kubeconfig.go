// Package kubeconfig reads kubeconfig files, merges them by the rules of kubectl, and checks what it finds.
//
// KUBECONFIG lists a.yaml and b.yaml. a.yaml has the context "east" and the current context "west". b.yaml
// has other contexts of the names "east" and "west". Then "east" is the context of a.yaml, and the current
// context is the "west" of b.yaml.
package kubeconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Kubeconfig is the content of several kubeconfig files. The first file that defines a name
// decides.
type Kubeconfig struct {
	current  string
	clusters map[string]Cluster
	users    map[string]User
	contexts map[string]Context
}

// Selection is what a kubeconfig has for one of its contexts.
type Selection struct {
	// ContextName is the name of Context.
	ContextName string

	Context Context
	Cluster Cluster
	// User is zero for a context whose user no file defines: requests are anonymous.
	User User
}

// ErrNoCluster is the error of a kubeconfig that defines no cluster for a context.
var ErrNoCluster = errors.New("no cluster is defined")

// New returns a Kubeconfig without content.
func New() *Kubeconfig {
	return &Kubeconfig{clusters: map[string]Cluster{}, users: map[string]User{}, contexts: map[string]Context{}}
}

// AddFile adds the entries of the file that k lacks.
func (k *Kubeconfig) AddFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parse(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("find the folder of %s: %w", path, err)
	}
	for _, c := range file.Clusters {
		resolvePaths(folder, &c.Cluster.CAFile)
		addMissing(k.clusters, c.Name, c.Cluster)
	}
	for _, u := range file.Users {
		resolvePaths(folder, &u.User.CertFile, &u.User.KeyFile, &u.User.TokenFile)
		// A command without a slash is looked for in PATH.
		if exec := u.User.Exec; exec != nil && strings.ContainsRune(exec.Command, filepath.Separator) {
			resolvePaths(folder, &exec.Command)
		}
		addMissing(k.users, u.Name, u.User)
	}
	for _, c := range file.Contexts {
		addMissing(k.contexts, c.Name, c.Context)
	}
	if k.current == "" {
		k.current = file.Current
	}
	return nil
}

// resolvePaths makes relative paths absolute: paths in a kubeconfig belong to its folder.
func resolvePaths(folder string, paths ...*string) {
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
}

// addMissing adds a value unless its name is known.
func addMissing[V any](to map[string]V, name string, value V) {
	if _, ok := to[name]; !ok {
		to[name] = value
	}
}

// Select returns what k has for a context. An empty name means the current context. The error is or wraps
// [ErrNoCluster] if there is no cluster and nothing else is wrong.
func (k *Kubeconfig) Select(name string) (Selection, error) {
	if name == "" {
		name = k.current
	}
	context, isKnown := k.contexts[name]
	if !isKnown && name != "" {
		return Selection{}, fmt.Errorf("the context %q does not exist: name another with --context", name)
	}
	s := Selection{ContextName: name, Context: context, User: k.users[context.User]}
	var errs []error
	for _, err := range s.User.check() {
		errs = append(errs, fmt.Errorf("the user %q: %w", context.User, err))
	}
	cluster, isDefined := k.clusters[context.Cluster]
	switch {
	case isDefined:
		s.Cluster = cluster
		for _, err := range cluster.check() {
			errs = append(errs, fmt.Errorf("the cluster %q: %w", context.Cluster, err))
		}
	case len(errs) == 0 && name == "" && len(k.contexts) > 0:
		return Selection{}, fmt.Errorf("no context is the current one, so that %w: name one with --context", ErrNoCluster)
	case len(errs) == 0 && context.Cluster == "":
		return Selection{}, ErrNoCluster
	case len(errs) == 0:
		return Selection{}, fmt.Errorf("the context %q is of the cluster %q: %w", name, context.Cluster, ErrNoCluster)
	default:
		errs = append(errs, fmt.Errorf("the cluster %q: %w", context.Cluster, ErrNoCluster))
	}
	if len(errs) > 0 {
		return Selection{}, errors.New(strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; "))
	}
	return s, nil
}
