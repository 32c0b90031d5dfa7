package kube

import (
	"errors"
	"fmt"
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // kubeconfigs with an oidc auth-provider
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ConfigSource describes where to look for the configuration of a client. The zero value
// looks where kubectl does, and then for the ServiceAccount of a Pod.
type ConfigSource struct {
	// Kubeconfig names one file. Default: the files listed in the environment variable
	// KUBECONFIG, merged; else ~/.kube/config; else the cluster that the program runs in.
	Kubeconfig string
	// Context is one of the contexts in the kubeconfig. Default: its current one.
	Context string
}

// Load returns the configuration that it finds, and the namespace of the kubeconfig's context
// or of the ServiceAccount.
func (s ConfigSource) Load() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	// An entry of KUBECONFIG that does not exist is skipped, as kubectl does; a file that
	// was asked for by name must be there.
	rules.ExplicitPath = s.Kubeconfig
	rules.WarnIfAllMissing = false // the error says it
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: s.Context})
	config, err = loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
			missing := "there is no kubeconfig"
			if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" && s.Kubeconfig == "" {
				missing = fmt.Sprintf("no file of KUBECONFIG=%s has a configuration", files)
			}
			return nil, "", fmt.Errorf("%s and this is no Pod: name a file with --kubeconfig or KUBECONFIG, or put one at ~/.kube/config", missing)
		}
		return nil, "", fmt.Errorf("load the kubeconfig: %w", err)
	}
	namespace, _, err = loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("load the namespace of the kubeconfig: %w", err)
	}
	return config, namespace, nil
}
