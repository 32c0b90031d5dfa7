package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// serve answers the requests of the API server for logs and commands with the reason why nothing runs. Without
// a listener on the port, the errors of `kubectl logs` would not name the reason.
func serve(ctx context.Context, listener net.Listener, cert, key string) error {
	server := &http.Server{Handler: handler(), ReadHeaderTimeout: 10 * time.Second}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.ServeTLS(listener, cert, key); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Pod %s/%s is simulated: container %s does not run and writes no log.\n",
			r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	for _, verb := range []string{"exec", "attach", "portForward", "run"} {
		mux.HandleFunc("/"+verb+"/{namespace}/{pod}/", refuse)
		mux.HandleFunc("/"+verb+"/{namespace}/{pod}", refuse)
	}
	return mux
}

func refuse(w http.ResponseWriter, r *http.Request) {
	http.Error(w, fmt.Sprintf("Pod %s/%s is simulated: none of its containers runs",
		r.PathValue("namespace"), r.PathValue("pod")), http.StatusNotImplemented)
}
