package yaretest

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/access/programctx"
	"github.com/yare-go/yare/kube"
)

// kubeconfigVariable is the environment variable that names the kubeconfig file of an existing
// cluster for tests, by an absolute path. The cluster must allow tests by the label
// yare-test=allowed of its namespace kube-system. The variable KUBECONFIG is never used.
const kubeconfigVariable = "YARETEST_KUBECONFIG"

// The label by which a cluster allows tests.
const (
	allowedLabel = "yare-test"
	allowedValue = "allowed"
)

// openExisting returns the existing cluster of a kubeconfig file, if the cluster allows tests.
func openExisting(path string) (*Cluster, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s=%s is not an absolute path: go test runs the tests of each package in its own folder",
			kubeconfigVariable, path)
	}
	config, _, err := kube.ConfigSource{Kubeconfig: path}.Load()
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", kubeconfigVariable, path, err)
	}
	client, err := kube.NewClient(config.Clone())
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", kubeconfigVariable, path, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	system, err := kube.Everywhere[corev1.Namespace](client).Get(ctx, "kube-system")
	if err != nil {
		return nil, fmt.Errorf("%s=%s: see whether the cluster allows tests: %w", kubeconfigVariable, path, err)
	}
	if system.Labels[allowedLabel] != allowedValue {
		return nil, fmt.Errorf("%s=%s: the cluster %s does not allow tests, which create and delete objects: to allow them, kubectl label namespace kube-system %s=%s",
			kubeconfigVariable, path, config.Host, allowedLabel, allowedValue)
	}
	return &Cluster{
		kubeconfig: path, config: config, tests: newTestStates(), sharedByPrograms: new(programctx.Shared),
	}, nil
}
