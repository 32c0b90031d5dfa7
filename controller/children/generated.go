package children

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Generated returns the live Secret of owner whose values are generated once, such as a password. If there is no such
// Secret, Generated creates secret as a child of owner, with the values that the functions of generate return for their
// keys. The Secret is never changed, replaced or pruned after that. What secret itself has, such as a user name and the
// type, is stored at the creation only.
//
// recorded is the name of the Secret in the status of owner, or empty as long as the status has none. Write the status
// before the values are used, for example by a database. From then on Generated creates no Secret: one that is gone, or
// has another name, is an error, because a new password would not be that of the database.
//
//	secret, err := children.Generated(ctx, c, db, password(db), db.Status.Secret,
//		map[string]func() string{"password": rand.Text}) // of crypto/rand
//
// A Secret that owner does not control is [kube.ErrForeignChild]. A Secret without one of the keys is an error, and the
// key is not generated again. The program needs controller.Reads with the verb get, unless it watches Secrets, and
// controller.Writes with the verb create. A Secret that owner must see after each change is owned (controller.Owns).
func Generated(
	ctx context.Context, c *kube.Client, owner kube.Object, secret *corev1.Secret, recorded string,
	generate map[string]func() string,
) (*corev1.Secret, error) {
	if secret == nil {
		return nil, errors.New("children.Generated: the Secret is nil: give its name and namespace")
	}
	g := generation{owner, secret, slices.Sorted(maps.Keys(generate))}
	switch {
	case isNil(owner) || owner.GetUID() == "":
		return nil, fmt.Errorf("%s: the owner has no uid: read it before its values are generated", g)
	case recorded != "" && recorded != secret.Name:
		return nil, fmt.Errorf("%s: the status names the Secret %q, whose values are in use: keep its name, or move its values by hand",
			g, recorded)
	}
	found, err := g.read(ctx, c)
	if err == nil {
		return found, nil
	}
	if kube.IsNotFound(err) && recorded == "" {
		created, err := g.create(ctx, c, generate)
		if !kube.IsAlreadyExists(err) {
			return created, err
		}
	}
	// The cache may be behind.
	found, err = g.read(ctx, c.Live())
	if kube.IsNotFound(err) && recorded != "" {
		return nil, fmt.Errorf("%s: the Secret is gone, although the status names it, and its values may be in use: restore it from a backup, or remove the name from the status to have new values: %w",
			g, err)
	}
	return found, err
}

// generation is a Secret whose values are generated once.
type generation struct {
	owner  kube.Object
	secret *corev1.Secret
	keys   []string
}

func (g generation) String() string {
	return "the generated Secret " + ident.Quoted(g.secret.Namespace, g.secret.Name)
}

// create creates the Secret with new values.
func (g generation) create(ctx context.Context, c *kube.Client, generate map[string]func() string) (*corev1.Secret, error) {
	secret := *g.secret
	secret.StringData = maps.Clone(secret.StringData)
	if secret.StringData == nil {
		secret.StringData = make(map[string]string, len(generate))
	}
	for _, key := range g.keys {
		value := generate[key]()
		if value == "" {
			return nil, fmt.Errorf("%s: the function for the key %q has returned an empty value", g, key)
		}
		secret.StringData[key] = value
	}
	return kube.Create(ctx, c, kube.OwnedBy(g.owner, &secret))
}

// read returns the Secret, or what is wrong with it.
func (g generation) read(ctx context.Context, c *kube.Client) (*corev1.Secret, error) {
	found, err := kube.Get[corev1.Secret](ctx, c, g.secret.Namespace, g.secret.Name)
	if err != nil {
		return nil, err
	}
	if o := metav1.GetControllerOfNoCopy(found); o == nil || o.UID != g.owner.GetUID() {
		return nil, fmt.Errorf("%s for %s: %w: choose another name", g,
			ident.Quoted(g.owner.GetNamespace(), g.owner.GetName()), kube.ErrForeignChild)
	}
	for _, key := range g.keys {
		if len(found.Data[key]) == 0 {
			return nil, fmt.Errorf("%s: it has no value for the key %q, which is not generated again: restore the value, or delete the Secret if nobody uses it",
				g, key)
		}
	}
	return found, nil
}
