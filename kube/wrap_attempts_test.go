package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/yare-go/yare/kube/wire"
)

// A handler above the transport gets each attempt. Its own error ends the request, and does not hide
// that an earlier attempt may have been carried out.
func TestWrapAttempts(t *testing.T) {
	t.Parallel()
	wrong := errors.New("it is over")
	var attempts, arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.URL.Query().Get("attempt"), strconv.Itoa(int(arrived.Add(1))); got != want {
			t.Errorf("attempt %s arrives as %s", want, got)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	count := func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			attempt := attempts.Add(1)
			if attempt == 3 {
				return nil, wrong
			}
			counted := *r
			counted.Query = url.Values{"attempt": {strconv.Itoa(int(attempt))}}
			return next.Do(ctx, &counted)
		})
	}
	c, err := NewClient(&Config{Host: server.URL, WrapAttempts: count})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Namespaced[gadget](c, "default").Apply(t.Context(), &gadget{ObjectMeta: named("default", "one")})
	if !errors.Is(err, wrong) || attempts.Load() != 3 || arrived.Load() != 2 || IsUnreachable(err) || !IsUnknown(err) {
		t.Errorf("after %d attempts, of which %d arrived: %v", attempts.Load(), arrived.Load(), err)
	}
	wantError(t, err, "patch gadgets.example.com", "default/one")
}
