package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

// users are those who change Notes and their ConfigMaps, each at the same rate. A user has Notes of
// its own, so that two users never change the same object.
type users struct {
	all    []*user
	counts counts
}

// user is one of the users. Its random numbers depend on the seed alone.
type user struct {
	users      *users
	notes      kube.API[workload.Note]
	configMaps kube.API[corev1.ConfigMap]
	random     *rand.Rand
	// present and absent are the names of Notes that the user has created, and has deleted.
	present, absent []string
	// maxAbsent is the number of absent Notes above which the user creates one.
	maxAbsent int
}

const userCount = 4

func newUsers(client *kube.Client, namespace string) *users {
	u := &users{}
	for i := range userCount {
		one := &user{
			users: u, notes: kube.Namespaced[workload.Note](client, namespace), configMaps: kube.Namespaced[corev1.ConfigMap](client, namespace),
			random: rand.New(rand.NewPCG(*seed, uint64(i))), maxAbsent: *objects / userCount / 100,
		}
		for k := i; k < *objects; k += userCount {
			one.absent = append(one.absent, fmt.Sprintf("note-%d", k))
		}
		u.all = append(u.all, one)
	}
	return u
}

// createAll creates all Notes.
func (u *users) createAll(ctx context.Context) error {
	errs := make([]error, len(u.all))
	var working sync.WaitGroup
	for i, each := range u.all {
		working.Go(func() {
			for len(each.absent) > 0 && errs[i] == nil {
				errs[i] = each.create(ctx)
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// change lets all users work until ctx ends.
func (u *users) change(ctx context.Context, working *sync.WaitGroup) {
	for _, each := range u.all {
		working.Go(func() {
			ticker := time.NewTicker(time.Duration(float64(time.Second) * userCount / *rate))
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					each.act(ctx)
				}
			}
		})
	}
}

// act makes one change. An error is counted: the API server may be down.
func (u *user) act(ctx context.Context) {
	var what string
	var err error
	switch n := u.random.IntN(100); {
	case n < 30 && len(u.absent) > u.maxAbsent:
		what, err = "create", u.create(ctx)
	case n < 30:
		what, err = "delete", u.delete(ctx)
	case n < 80:
		what = "edit"
		_, err = u.notes.Patch(ctx, u.pick(), kube.MergePatch(map[string]any{"spec": map[string]any{"text": u.text()}}))
	case n < 90:
		what = "edit of a ConfigMap"
		_, err = u.configMaps.Patch(ctx, u.pick(), kube.MergePatch(map[string]any{"data": map[string]any{"text": "changed by somebody else"}}))
	default:
		what, err = "deletion of a ConfigMap", u.configMaps.Delete(ctx, u.pick())
	}
	if err != nil {
		what += " that failed"
	}
	u.users.counts.add(what)
}

// create creates the Note that has been absent for longest.
func (u *user) create(ctx context.Context) error {
	name := u.absent[0]
	u.absent = u.absent[1:]
	_, err := u.notes.Create(ctx, &workload.Note{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: workload.NoteSpec{Text: u.text()},
	})
	if err != nil {
		u.absent = append(u.absent, name)
		return err
	}
	u.present = append(u.present, name)
	return nil
}

// delete deletes a Note.
func (u *user) delete(ctx context.Context) error {
	i := u.random.IntN(len(u.present))
	name := u.present[i]
	if err := kube.IgnoreNotFound(u.notes.Delete(ctx, name)); err != nil {
		return err
	}
	u.present[i] = u.present[len(u.present)-1]
	u.present = u.present[:len(u.present)-1]
	u.absent = append(u.absent, name)
	return nil
}

// pick returns the name of a Note.
func (u *user) pick() string { return u.present[u.random.IntN(len(u.present))] }

// text returns a text of 20 to 100 characters.
func (u *user) text() string {
	text := make([]byte, 20+u.random.IntN(81))
	for i := range text {
		text[i] = byte('a' + u.random.IntN(26))
	}
	return string(text)
}
