// Package programctx carries in the context of a program what tests and explorations know of the program: what the
// programs of one process share ([Shared]), and that the program is started again after a crash ([WithRestarts]).
package programctx

import (
	"context"
	"errors"
	"io"
	"sync"
)

// Shared holds what the programs in one process have in common while their cluster lives, such as the server of
// conversions: a kind has one conversion in a cluster, and the programs of several tests define the kind. A Shared is
// safe for concurrent use. The zero value is empty.
type Shared struct {
	mu     sync.Mutex
	values map[any]io.Closer
}

// LoadOrMake returns the value of a key. If there is none, newValue makes the value.
func (s *Shared) LoadOrMake(key any, newValue func() (io.Closer, error)) (io.Closer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v, nil
	}
	v, err := newValue()
	if err != nil {
		return nil, err
	}
	if s.values == nil {
		s.values = make(map[any]io.Closer)
	}
	s.values[key] = v
	return v, nil
}

// Close closes all values. The owner of the cluster calls it after the end of all programs.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, v := range s.values {
		errs = append(errs, v.Close())
	}
	s.values = nil
	return errors.Join(errs...)
}

type sharedKey struct{}

// WithShared returns a context for a program whose cluster has s.
func WithShared(ctx context.Context, s *Shared) context.Context {
	return context.WithValue(ctx, sharedKey{}, s)
}

// SharedFrom returns the argument of [WithShared], or nil.
func SharedFrom(ctx context.Context) *Shared {
	s, _ := ctx.Value(sharedKey{}).(*Shared)
	return s
}

type restartsKey struct{}

// WithRestarts returns a context for a program that is started again under its name after a crash, as in an
// exploration. The next process takes over the webhook configurations that the crash has left.
func WithRestarts(ctx context.Context) context.Context {
	return context.WithValue(ctx, restartsKey{}, true)
}

// HasRestarts reports whether ctx comes from [WithRestarts].
func HasRestarts(ctx context.Context) bool {
	hasRestarts, _ := ctx.Value(restartsKey{}).(bool)
	return hasRestarts
}
