package operator_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/yaretest"
)

// rotationAge is the age at which an authority gets a successor.
const rotationAge = 180 * 24 * time.Hour

// secretName returns the name of the Secret with the certificates.
func (s *processSite) secretName() string { return s.program + "-webhooks" }

// secretData returns the data of the Secret with the certificates, which may be missing.
func (s *processSite) secretData() map[string][]byte {
	s.t.Helper()
	secret, err := kube.Get[corev1.Secret](s.t.Context(), s.client, s.namespace, s.secretName())
	if kube.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return secret.Data
}

// setSecretData replaces the data of the Secret with the certificates, as somebody else than the program.
func (s *processSite) setSecretData(data map[string][]byte) {
	s.t.Helper()
	if _, err := kube.Namespaced[corev1.Secret](s.client, s.namespace).Modify(s.t.Context(), s.secretName(), func(secret *corev1.Secret) error {
		secret.Data = maps.Clone(data)
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
}

// agedSecrets returns data of the Secret of an installation: that of a program which ran so long ago as the first of ages says,
// then that of the same program at the next age, and so on. For example, with the ages of 361 and 181 days, the first data has one
// authority, and the second data has its successor too. The namespace of the installation exists.
func (s *processSite) agedSecrets(ages ...time.Duration) (all []map[string][]byte) {
	s.t.Helper()
	secrets := kube.Namespaced[corev1.Secret](s.client, s.namespace)
	made, err := secrets.Create(s.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "aged-"}})
	if err != nil {
		s.t.Fatal(err)
	}
	for i, age := range ages {
		past := func() time.Time { return time.Now().Add(-age) }
		store, err := certificates.New(certificates.Config{
			Client: s.client, Namespace: s.namespace, Secret: made.Name,
			Names: certificates.ServiceNames(s.program, s.namespace), Log: slog.New(slog.DiscardHandler), Now: past,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(s.t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := store.Run(ctx); err != nil {
				s.t.Error(err)
			}
		})
		yaretest.Eventually(s.t, func() error {
			if err := store.Ready(); err != nil {
				return err
			}
			if got := store.Status().Authorities; got != i+1 {
				return fmt.Errorf("there are %d authorities, not %d", got, i+1)
			}
			return nil
		})
		cancel()
		running.Wait()
		live, err := secrets.Get(s.t.Context(), made.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, live.Data)
	}
	if err := secrets.Delete(s.t.Context(), made.Name); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// authoritiesIn returns the number of certificates in a bundle.
func authoritiesIn(bundle []byte) int {
	return bytes.Count(bundle, []byte("-----BEGIN CERTIFICATE-----"))
}
