// Package etcdclient sends requests to a running etcd that cause faults. It is apart from the
// server, so that its users need not link the server.
package etcdclient

import (
	"context"
	"fmt"
	"io"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"
)

// Quiet keeps the connections of Compact from writing to standard error: the error of Compact
// reports problems, and a pause or a restart of etcd needs no warning. Quiet must be called
// before Compact.
func Quiet() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// Compact drops the history of a store up to its current revision, which it returns.
func Compact(ctx context.Context, endpoint string) (revision int64, err error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		return 0, fmt.Errorf("connect to etcd: %w", err)
	}
	defer client.Close()
	// The answer to any read holds the current revision. This key does not exist.
	got, err := client.Get(ctx, "yare", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its revision: %w", err)
	}
	revision = got.Header.Revision
	if _, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		return 0, fmt.Errorf("compact etcd at revision %d: %w", revision, err)
	}
	return revision, nil
}
