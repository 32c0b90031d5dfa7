package operator_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// pumpSite is an installation of the program with pumps.
type pumpSite[G interface{ Group() string }] struct {
	*processSite
	pumps kube.API[Pump[G]]
}

func newPumpSite[G interface{ Group() string }](t *testing.T, cluster *yaretest.Cluster, network *serviceNetwork, namespace string) *pumpSite[G] {
	t.Helper()
	var g G
	s := &pumpSite[G]{processSite: newProcessSite(t, cluster, network, "pumps", g.Group(), namespace)}
	s.pumps = kube.Namespaced[Pump[G]](s.userClient, s.users[0])
	pumps := s.pumps.For(s.client, s.users[0])
	s.isServed = func() error { _, err := pumps.List(t.Context()); return err }
	return s
}

// newPump returns a pump in the first namespace of users.
func (s *pumpSite[G]) newPump(name string, size int) *Pump[G] {
	p := &Pump[G]{ObjectMeta: metav1.ObjectMeta{Namespace: s.users[0], Name: name}}
	p.Spec.Size = size
	return p
}

// checkRefused returns an error unless the validator refuses a pump of a size.
func (s *pumpSite[G]) checkRefused(size int) error {
	_, err := s.pumps.Create(s.t.Context(), s.newPump("refused", size), kube.DryRun())
	if !kube.IsInvalid(err) || !strings.Contains(err.Error(), "spec.size") {
		return fmt.Errorf("a pump of the size %d: %w", size, cmp.Or(err, errors.New("it was accepted")))
	}
	return nil
}
