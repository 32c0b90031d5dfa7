package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/testkit/parallel"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// parentVariable makes this test binary a program that starts the control plane it names,
// and does nothing else.
const parentVariable = "YARE_INTEGRATION_PARENT"

// nodeBinaryVariable makes the control plane of parentVariable have a real node of this binary.
const nodeBinaryVariable = "YARE_INTEGRATION_NODE"

func TestMain(m *testing.M) {
	if binary := os.Getenv(parentVariable); binary != "" {
		os.Exit(beParent(binary))
	}
	os.Exit(parallel.RunTests(m))
}

// beParent starts a control plane, prints its process IDs, and waits to be killed.
func beParent(binary string) int {
	node := os.Getenv(nodeBinaryVariable)
	p, err := plane.Start(context.Background(), plane.Options{Binary: binary, RealNode: node != "", NodeBinary: node})
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(p.Pids())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-p.Done()
	return 0
}

// shared returns the control plane of the tests that break no component of it.
func shared(t *testing.T) *yaretest.Cluster {
	t.Helper()
	skipIfShort(t)
	return yaretest.Shared(t)
}

func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
}

// findBinary returns the path of the control plane's binary, which it builds if need be.
func findBinary(t *testing.T) string {
	t.Helper()
	skipIfShort(t)
	binary, err := plane.Finder{Console: console.ForTests("yaretest")}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// clientOf returns a client with the rights of a kubeconfig.
func clientOf(t *testing.T, kubeconfig string) *kube.Client {
	t.Helper()
	config, _, err := kube.ConfigSource{Kubeconfig: kubeconfig}.Load()
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 10 * time.Second
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
