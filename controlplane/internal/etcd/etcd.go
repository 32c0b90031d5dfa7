// Package etcd runs the store of a control plane, in one member and for one lifetime.
package etcd

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/yare-go/yare/controlplane/internal/lifeline"
)

// Main runs the command `etcd`.
func Main(args []string, line lifeline.Lifeline) error {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	dataDir := flags.String("data-dir", "", "folder of the data (required)")
	listen := flags.String("listen-client-url", "", "where to serve: unix:///path or http://127.0.0.1:port (required)")
	logLevel := flags.String("log-level", "warn", "debug, info, warn or error")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dataDir == "" || *listen == "" {
		return fmt.Errorf("etcd: --data-dir and --listen-client-url are required")
	}
	client, err := url.Parse(*listen)
	if err != nil {
		return fmt.Errorf("etcd: --listen-client-url: %w", err)
	}
	if client.Scheme == "unix" {
		// A process that was killed leaves its socket, and nobody can listen on it again.
		if err := os.Remove(client.Path); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("etcd: removing an old socket: %w", err)
		}
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return run(ctx, configuration(*dataDir, *client, *logLevel), line)
}

// configuration returns the configuration of a store whose content need not survive the machine.
func configuration(dataDir string, client url.URL, logLevel string) *embed.Config {
	c := embed.NewConfig()
	c.Dir = dataDir
	c.LogLevel = logLevel
	c.LogOutputs = []string{"stderr"}
	c.ListenClientUrls = []url.URL{client}
	// There is no second member: listen for none. The addresses that are advertised are
	// never dialed, but they are checked, and may not be addresses of a unix socket.
	c.ListenPeerUrls = nil

	// With the defaults, a member that is alone waits a second before it elects itself.
	c.TickMs = 10
	c.ElectionMs = 100

	c.UnsafeNoFsync = true
	// Small batches committed often: a read right after a write should not wait.
	c.BackendBatchInterval = 10 * time.Millisecond
	c.QuotaBackendBytes = 4 << 30
	c.Name = "yare"
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.WarningUnaryRequestDuration = time.Second
	c.WarningApplyDuration = time.Second
	return c
}

func run(ctx context.Context, c *embed.Config, line lifeline.Lifeline) error {
	e, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	// Not e.Close, which waits 5 s for clients to end their watches.
	defer e.Server.HardStop()
	select {
	case <-e.Server.ReadyNotify():
		line.Ready()
	case err := <-e.Err():
		return fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-e.Err():
		return fmt.Errorf("run etcd: %w", err)
	case <-e.Server.StopNotify():
		return fmt.Errorf("etcd stopped by itself")
	case <-ctx.Done():
		return nil
	}
}
