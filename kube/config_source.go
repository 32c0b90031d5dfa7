package kube

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/yare-go/yare/kube/internal/kubeconfig"
)

// ConfigSource describes where to look for the configuration of a client. The zero value
// looks where kubectl does, and then for the ServiceAccount of a Pod.
type ConfigSource struct {
	// Kubeconfig names one file. Default: the files listed in the environment variable
	// KUBECONFIG, merged; else ~/.kube/config; else the cluster that the program runs in.
	Kubeconfig string
	// Context names one of the contexts in the kubeconfig. Default: its current context.
	Context string
}

// Load returns the configuration that s finds, and the namespace of the kubeconfig's context.
// In a Pod the default of the namespace is the environment variable POD_NAMESPACE, else the
// namespace of the ServiceAccount. Otherwise the default is "default".
//
// The files of KUBECONFIG are merged by the rules of kubectl: the first file that defines a cluster, a
// user, a context or the current context decides. A missing file is skipped. A relative path in a file
// belongs to the folder of the file. Credentials are sent to a server with https only.
//
// A user with an auth-provider is an error. Package kube/clientgo supports auth-providers.
func (s ConfigSource) Load() (config *Config, namespace string, err error) {
	merged, err := s.read()
	if err != nil {
		return nil, "", fmt.Errorf("load the kubeconfig: %w", err)
	}
	selection, err := merged.Select(s.Context)
	if errors.Is(err, kubeconfig.ErrNoCluster) {
		if !isInPod(serviceAccountDir) {
			return nil, "", s.noConfigError(err)
		}
		if config, err = podConfig(serviceAccountDir); err != nil {
			return nil, "", fmt.Errorf("load the configuration of the Pod: %w", err)
		}
		return config, podNamespace(serviceAccountDir), nil
	}
	if err == nil {
		config, err = configOf(selection)
	}
	if err != nil {
		return nil, "", fmt.Errorf("load the kubeconfig: %w", err)
	}
	if namespace = selection.Context.Namespace; namespace == "" {
		namespace = "default"
		if isInPod(serviceAccountDir) {
			namespace = podNamespace(serviceAccountDir)
		}
	}
	return config, namespace, nil
}

// read returns the content of all files together.
func (s ConfigSource) read() (*kubeconfig.Kubeconfig, error) {
	files := []string{s.Kubeconfig}
	if s.Kubeconfig != "" {
		// A file that was asked for by name must exist.
		if _, err := os.Stat(s.Kubeconfig); err != nil {
			return nil, err
		}
	} else if list := os.Getenv("KUBECONFIG"); list != "" {
		files = filepath.SplitList(list)
	} else if home, err := os.UserHomeDir(); err == nil {
		files = []string{filepath.Join(home, ".kube", "config")}
	}
	merged := kubeconfig.New()
	var errs []error
	for _, file := range files {
		if file == "" {
			continue
		}
		if err := merged.AddFile(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return merged, errors.Join(errs...)
}

// configOf returns the configuration of what was selected in a kubeconfig.
func configOf(s kubeconfig.Selection) (*Config, error) {
	cluster, user := s.Cluster, s.User
	config := &Config{Host: cluster.Server, Context: s.ContextName, DisableCompression: cluster.DisableCompression}
	if cluster.ProxyURL != "" {
		proxy, err := cluster.Proxy()
		if err != nil {
			return nil, err
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	if u, err := url.ParseRequestURI(config.Host); err == nil && u.Opaque == "" && len(u.Path) > 1 {
		u.RawQuery, u.Fragment = "", ""
		config.Host = u.String()
	}
	if user.As != "" {
		config.Impersonate = Impersonation{UserName: user.As, UID: user.AsUID, Groups: user.AsGroups, Extra: user.AsExtra}
	}
	// Credentials are for servers with TLS only. An address without a scheme has no TLS in a kubeconfig: the CA beside it
	// is not read either, so the client uses http. See the field Host of [Config].
	if base, err := serverURL(config.Host, false); err != nil || base.Scheme != "https" {
		return config, nil
	}
	config.CAFile, config.CAData = cluster.CAFile, cluster.CAData
	config.ServerName, config.Insecure = cluster.TLSServerName, cluster.Insecure
	config.BearerToken, config.BearerTokenFile = user.Token, user.TokenFile
	if user.Token == "" && user.TokenFile != "" {
		token, err := os.ReadFile(user.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("the user %q: its tokenFile: %w", s.Context.User, err)
		}
		config.BearerToken = strings.TrimSpace(string(token))
	}
	if user.CertFile != "" || len(user.CertData) > 0 {
		config.CertFile, config.CertData = user.CertFile, user.CertData
		config.KeyFile, config.KeyData = user.KeyFile, user.KeyData
	}
	config.Username, config.Password = user.Username, user.Password
	if user.Exec != nil {
		config.Exec = execConfigOf(user.Exec, cluster)
	}
	return config, nil
}

// execConfigOf returns the configuration of the credential plugin e for a cluster.
func execConfigOf(e *kubeconfig.Exec, cluster kubeconfig.Cluster) *ExecConfig {
	config := &ExecConfig{
		Command: e.Command, Args: e.Args, APIVersion: e.APIVersion,
		InstallHint:     printable(e.InstallHint),
		InteractiveMode: e.Mode(), ProvideClusterInfo: e.ProvideClusterInfo,
	}
	for _, v := range e.Env {
		config.Env = append(config.Env, v.Name+"="+v.Value)
	}
	for _, extension := range cluster.Extensions {
		if extension.Name == "client.authentication.k8s.io/exec" {
			config.ClusterConfig = extension.Extension
		}
	}
	return config
}

// printable returns s without control characters other than white space, which could change
// the state of a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || r >= '\t' && r <= '\r' {
			return r
		}
		return '·'
	}, s)
}

// noConfigError returns the error of a source that has no configuration. The error names what to do. cause
// wraps ErrNoCluster.
func (s ConfigSource) noConfigError(cause error) error {
	text := "there is no kubeconfig"
	if files := os.Getenv("KUBECONFIG"); s.Kubeconfig != "" {
		text = fmt.Sprintf("the kubeconfig %s has no configuration", s.Kubeconfig)
	} else if files != "" {
		text = fmt.Sprintf("no file of KUBECONFIG=%s has a configuration", files)
	}
	if cause != kubeconfig.ErrNoCluster { //nolint:errorlint // a wrapped error says more
		text += " (" + cause.Error() + ")"
	}
	return fmt.Errorf("%s and this is no Pod: name a file with --kubeconfig or KUBECONFIG, or put one at ~/.kube/config",
		text)
}

// serviceAccountDir is where a Pod finds the files of its ServiceAccount.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// isInPod reports whether the environment and the ServiceAccount's folder are those of a Pod.
func isInPod(folder string) bool {
	token, err := os.Stat(filepath.Join(folder, "token"))
	return os.Getenv("KUBERNETES_SERVICE_HOST") != "" && os.Getenv("KUBERNETES_SERVICE_PORT") != "" &&
		err == nil && !token.IsDir()
}

// podConfig returns the configuration of the Pod that this process runs in.
func podConfig(folder string) (*Config, error) {
	tokenFile, caFile := filepath.Join(folder, "token"), filepath.Join(folder, "ca.crt")
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	config := &Config{
		Host: "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"),
			os.Getenv("KUBERNETES_SERVICE_PORT")),
		BearerToken:     strings.TrimSpace(string(token)),
		BearerTokenFile: tokenFile,
	}
	if ca, err := os.ReadFile(caFile); err != nil || !x509.NewCertPool().AppendCertsFromPEM(ca) {
		slog.Warn("the Pod has no CA of its cluster: trusting the CAs of the system", "file", caFile, "error", err)
	} else {
		config.CAFile = caFile
	}
	return config, nil
}

// podNamespace returns the namespace of the Pod that this process runs in.
func podNamespace(folder string) string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	data, _ := os.ReadFile(filepath.Join(folder, "namespace"))
	if namespace := strings.TrimSpace(string(data)); namespace != "" {
		return namespace
	}
	return "default"
}
