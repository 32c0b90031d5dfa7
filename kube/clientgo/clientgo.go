// Package clientgo converts between the configurations of yare and of client-go: for programs
// that also use client-go's typed clients, and for users with an auth-provider.
//
// The package links client-go, which adds about four megabytes to an operator. No other package
// of yare imports it.
package clientgo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // for kubeconfigs with an oidc auth-provider
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/yare-go/yare/kube"
)

// Load returns the configuration of source as [kube.ConfigSource.Load] does, but by client-go's
// tools/clientcmd. It accepts users with an auth-provider: oidc, and the auth-providers that the
// program registers by an import.
func Load(source kube.ConfigSource) (config *kube.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = source.Kubeconfig
	rules.WarnIfAllMissing = false // the error reports it
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: source.Context})
	loaded, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("load the kubeconfig: %w", err)
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", fmt.Errorf("load the namespace of the kubeconfig: %w", err)
	}
	if config, err = ConfigFrom(loaded); err != nil {
		return nil, "", err
	}
	return config, namespace, nil
}

// ConfigFrom returns the configuration that reaches the same server as config does, with the
// same credentials. Throttling, warning handlers and serialization belong to client-go's clients
// and are left out. An auth-provider becomes a part of WrapTransport. A Transport and a list of
// protocols have no counterpart: both are errors.
func ConfigFrom(config *rest.Config) (*kube.Config, error) {
	switch {
	case config == nil:
		return nil, errors.New("the configuration is nil")
	case config.Transport != nil:
		return nil, errors.New("the configuration has a Transport of its own: use WrapTransport instead")
	case len(config.NextProtos) > 0:
		return nil, errors.New("the configuration limits the protocols (NextProtos), which kube.Config cannot: remove them")
	case config.AuthProvider != nil && config.ExecProvider != nil:
		return nil, errors.New("the configuration has both an auth-provider and a credential plugin: remove one of them")
	}
	c := &kube.Config{
		Host:   config.Host,
		CAData: config.CAData, CAFile: config.CAFile, ServerName: config.ServerName, Insecure: config.Insecure,
		CertData: config.CertData, CertFile: config.CertFile, KeyData: config.KeyData, KeyFile: config.KeyFile,
		BearerToken: config.BearerToken, BearerTokenFile: config.BearerTokenFile,
		Username: config.Username, Password: config.Password,
		Impersonate: kube.Impersonation{
			UserName: config.Impersonate.UserName, UID: config.Impersonate.UID,
			Groups: config.Impersonate.Groups, Extra: config.Impersonate.Extra,
		},
		Proxy: config.Proxy, Dial: config.Dial, DisableCompression: config.DisableCompression,
		WrapTransport: config.WrapTransport,
		UserAgent:     config.UserAgent, Timeout: config.Timeout,
	}
	if e := config.ExecProvider; e != nil {
		exec, err := execFrom(e)
		if err != nil {
			return nil, err
		}
		c.Exec = exec
	}
	if config.AuthProvider != nil {
		provider, err := rest.GetAuthProvider(config.Host, config.AuthProvider, config.AuthConfigPersister)
		if err != nil {
			return nil, fmt.Errorf("the auth-provider %q: %w", config.AuthProvider.Name, err)
		}
		c.WrapTransport = transport.Wrappers(config.WrapTransport, provider.WrapTransport)
	}
	return c.Clone(), nil
}

func execFrom(e *clientcmdapi.ExecConfig) (*kube.ExecConfig, error) {
	if t := e.PluginPolicy.PolicyType; t != "" && t != clientcmdapi.PluginPolicyAllowAll {
		return nil, fmt.Errorf("the credential plugin %s has the policy %s, which kube.Config does not support: check the command yourself, and remove the policy", e.Command, t)
	}
	exec := &kube.ExecConfig{
		Command: e.Command, Args: e.Args, APIVersion: e.APIVersion, InstallHint: e.InstallHint,
		InteractiveMode: string(e.InteractiveMode), ProvideClusterInfo: e.ProvideClusterInfo,
	}
	if e.StdinUnavailable {
		if e.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode {
			return nil, fmt.Errorf("the credential plugin %s needs the standard input, which is not available: %s",
				e.Command, e.StdinUnavailableMessage)
		}
		exec.InteractiveMode = string(clientcmdapi.NeverExecInteractiveMode)
	}
	for _, v := range e.Env {
		exec.Env = append(exec.Env, v.Name+"="+v.Value)
	}
	if e.Config != nil {
		config, err := kube.Marshal(e.Config)
		if unknown, ok := e.Config.(*runtime.Unknown); ok {
			config, err = unknown.Raw, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the cluster's settings for the credential plugin %s: %w", e.Command, err)
		}
		exec.ClusterConfig = config
	}
	return exec, nil
}

// ToREST returns the configuration of client-go that reaches the same server as config does, with
// the same credentials.
func ToREST(config *kube.Config) *rest.Config {
	c := config.Clone()
	r := &rest.Config{
		Host:     c.Host,
		Username: c.Username, Password: c.Password,
		BearerToken: c.BearerToken, BearerTokenFile: c.BearerTokenFile,
		Impersonate: rest.ImpersonationConfig{
			UserName: c.Impersonate.UserName, UID: c.Impersonate.UID,
			Groups: c.Impersonate.Groups, Extra: c.Impersonate.Extra,
		},
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.CAData, CAFile: c.CAFile, ServerName: c.ServerName, Insecure: c.Insecure,
			CertData: c.CertData, CertFile: c.CertFile, KeyData: c.KeyData, KeyFile: c.KeyFile,
		},
		Proxy: c.Proxy, Dial: c.Dial, DisableCompression: c.DisableCompression,
		WrapTransport: c.WrapTransport,
		UserAgent:     c.UserAgent, Timeout: c.Timeout,
	}
	if c.Exec == nil {
		return r
	}
	r.ExecProvider = &clientcmdapi.ExecConfig{
		Command: c.Exec.Command, Args: slices.Clone(c.Exec.Args), APIVersion: c.Exec.APIVersion,
		InstallHint:        c.Exec.InstallHint,
		InteractiveMode:    clientcmdapi.ExecInteractiveMode(c.Exec.InteractiveMode),
		ProvideClusterInfo: c.Exec.ProvideClusterInfo,
	}
	for _, v := range c.Exec.Env {
		name, value, _ := strings.Cut(v, "=")
		r.ExecProvider.Env = append(r.ExecProvider.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
	}
	if len(c.Exec.ClusterConfig) > 0 {
		r.ExecProvider.Config = &runtime.Unknown{Raw: c.Exec.ClusterConfig, ContentType: runtime.ContentTypeJSON}
	}
	return r
}
