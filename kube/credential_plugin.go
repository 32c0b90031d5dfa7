package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// The versions of ExecCredential.
const (
	execV1      = "client.authentication.k8s.io/v1"
	execV1beta1 = "client.authentication.k8s.io/v1beta1"
)

// pluginTimeout is how long a credential plugin may run. Some wait for a login in a browser.
const pluginTimeout = 5 * time.Minute

// maxPluginPause is the longest pause after a run that failed.
const maxPluginPause = time.Minute

// pluginRunner runs a credential plugin, one run at a time. It keeps the credentials until their end, or
// until the server refuses them. The failure of a run is the answer to all requests that wait for the run, and to
// those of a pause after the run. The pause lasts for a second, and twice as long after each further failure, up to
// maxPluginPause.
type pluginRunner struct {
	config *ExecConfig
	// cluster describes the server to the plugin. It is nil unless ProvideClusterInfo is set.
	cluster *execCluster
	// onRotation is called when the client certificate has changed.
	onRotation func()
	now        func() time.Time
	// isTerminal reports whether the standard input is a terminal.
	isTerminal func() bool

	// running is full while a plugin runs.
	running chan struct{}
	mu      sync.Mutex
	// result is nil before the first run.
	result *pluginCredentials
	// failure is the error of the last run, or nil. failureCount is the number of runs that failed in a row.
	failure      *pluginError
	failureCount int
	// pausedUntil is when the plugin may run again after a failure.
	pausedUntil time.Time
}

// pluginError is the error of a run of a credential plugin.
type pluginError struct {
	command string
	err     error
}

func (e *pluginError) Error() string {
	return fmt.Sprintf("get credentials from %s: %v", e.command, e.err)
}

func (e *pluginError) Unwrap() error { return e.err }

// pluginCredentials are the credentials that one run of the plugin printed.
type pluginCredentials struct {
	token string
	// certificate is nil if the plugin printed none.
	certificate *tls.Certificate
	// expires is zero if the credentials do not expire.
	expires time.Time
}

// credentialDocument is the ExecCredential of both versions, as a plugin prints it.
type credentialDocument struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Spec       execSpec    `json:"spec"`
	Status     *execStatus `json:"status,omitempty"`
}

type execSpec struct {
	Cluster     *execCluster `json:"cluster,omitempty"`
	Interactive bool         `json:"interactive"`
}

type execCluster struct {
	Server             string          `json:"server"`
	TLSServerName      string          `json:"tls-server-name,omitempty"`
	Insecure           bool            `json:"insecure-skip-tls-verify,omitempty"`
	CAData             []byte          `json:"certificate-authority-data,omitempty"`
	ProxyURL           string          `json:"proxy-url,omitempty"`
	DisableCompression bool            `json:"disable-compression,omitempty"`
	Config             json.RawMessage `json:"config"`
}

type execStatus struct {
	ExpirationTimestamp   *time.Time `json:"expirationTimestamp,omitempty"`
	Token                 string     `json:"token,omitempty"`
	ClientCertificateData string     `json:"clientCertificateData,omitempty"`
	ClientKeyData         string     `json:"clientKeyData,omitempty"`
}

func newPluginRunner(config *Config) (*pluginRunner, error) {
	e := &pluginRunner{
		config:     config.Exec,
		now:        time.Now,
		isTerminal: func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
		running:    make(chan struct{}, 1),
	}
	if v := e.config.APIVersion; v != execV1 && v != execV1beta1 {
		return nil, fmt.Errorf("the credential plugin %s has the apiVersion %q: it must be %s or %s",
			e.config.Command, v, execV1, execV1beta1)
	}
	if !e.config.ProvideClusterInfo {
		return e, nil
	}
	ca, err := dataOrFile(config.CAData, config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA for the credential plugin: %w", err)
	}
	e.cluster = &execCluster{
		Server: config.Host, TLSServerName: config.ServerName, Insecure: config.Insecure, CAData: ca,
		DisableCompression: config.DisableCompression, Config: config.Exec.ClusterConfig,
	}
	if config.Proxy != nil {
		base, err := serverURL(config.Host, config.hasCA() || config.Insecure)
		if err != nil {
			return nil, fmt.Errorf("find the proxy for the credential plugin: %w", err)
		}
		proxy, err := config.Proxy(&http.Request{Method: http.MethodGet, URL: base, Host: base.Host, Header: http.Header{}})
		if err != nil {
			return nil, fmt.Errorf("find the proxy for the credential plugin: %w", err)
		}
		if proxy != nil {
			e.cluster.ProxyURL = proxy.String()
		}
	}
	return e, nil
}

// get returns credentials that have not expired. It runs the plugin if there are none.
func (e *pluginRunner) get(ctx context.Context) (*pluginCredentials, error) {
	if r, ok := e.current(); ok {
		return r, nil
	}
	select {
	case e.running <- struct{}{}:
		defer func() { <-e.running }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	before, ok := e.current()
	if ok {
		return before, nil // of the run that ended just now
	}
	if err := e.pauseError(); err != nil {
		return nil, err
	}
	r, err := e.run(ctx)
	if err != nil {
		failure := &pluginError{e.config.Command, err}
		if ctx.Err() == nil { // otherwise the caller has ended the run
			e.recordFailure(failure)
		}
		return nil, failure
	}
	e.recordResult(r)
	if before != nil && !isSameCertificate(before.certificate, r.certificate) {
		e.onRotation()
	}
	return r, nil
}

// current returns the credentials of the last run, or nil. It reports whether they can be used.
func (e *pluginRunner) current() (r *pluginCredentials, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.result, e.result != nil && (e.result.expires.IsZero() || !e.now().After(e.result.expires))
}

// pauseError returns the failure of the last run during the pause after the run. Otherwise it returns nil.
func (e *pluginRunner) pauseError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.pausedUntil.Sub(e.now())
	if e.failure == nil || left <= 0 {
		return nil
	}
	return fmt.Errorf("%w; it is run again in %s", e.failure, left.Round(time.Millisecond))
}

// recordFailure records that a run failed.
func (e *pluginRunner) recordFailure(failure *pluginError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pause := min(time.Second<<min(e.failureCount, 10), maxPluginPause)
	e.failure, e.pausedUntil = failure, e.now().Add(pause)
	e.failureCount++
}

// recordResult records the credentials of a run.
func (e *pluginRunner) recordResult(r *pluginCredentials) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.result, e.failure, e.failureCount = r, nil, 0
}

// expire makes the next request run the plugin again, unless the credentials have been renewed
// since the server refused them.
func (e *pluginRunner) expire(used *pluginCredentials) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.result == used {
		expired := *used
		expired.expires = time.Unix(0, 0)
		e.result = &expired
	}
}

// certificate returns the client certificate, which is empty if the plugin printed none.
func (e *pluginRunner) certificate(ctx context.Context) (*tls.Certificate, error) {
	r, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	if r.certificate == nil {
		return new(tls.Certificate), nil
	}
	return r.certificate, nil
}

func isSameCertificate(a, b *tls.Certificate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}

// run runs the plugin.
func (e *pluginRunner) run(ctx context.Context) (*pluginCredentials, error) {
	interactive, err := e.isInteractive()
	if err != nil {
		return nil, err
	}
	info, err := Marshal(credentialDocument{
		APIVersion: e.config.APIVersion, Kind: "ExecCredential",
		Spec: execSpec{Cluster: e.cluster, Interactive: interactive},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pluginTimeout, fmt.Errorf("it ran for longer than %s", pluginTimeout))
	defer cancel()
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, e.config.Command, e.config.Args...)
	cmd.Env = append(append(os.Environ(), e.config.Env...), "KUBERNETES_EXEC_INFO="+string(info))
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	// A child of the plugin can hold the output open for longer than the plugin runs.
	cmd.WaitDelay = time.Second
	if interactive {
		cmd.Stdin = os.Stdin
	}
	if err := cmd.Run(); err != nil {
		return nil, e.runError(ctx, err)
	}
	return e.parse(stdout.Bytes())
}

// isInteractive reports whether the plugin gets the standard input.
func (e *pluginRunner) isInteractive() (bool, error) {
	switch mode := e.config.InteractiveMode; mode {
	case interactiveNever:
		return false, nil
	case interactiveIfAvailable:
		return e.isTerminal(), nil
	case interactiveAlways:
		if !e.isTerminal() {
			return false, errors.New(
				"it needs a terminal, and the standard input is none: run the program in a terminal, or use other credentials")
		}
		return true, nil
	default:
		return false, fmt.Errorf("its interactiveMode is %q: it must be Never, IfAvailable or Always", mode)
	}
}

// runError returns the error of a plugin that did not run, or failed.
func (e *pluginRunner) runError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("it failed with %s; its standard error says why", exit.ProcessState)
	}
	hint := strings.TrimSpace(e.config.InstallHint)
	if _, ok := errors.AsType[*exec.Error](err); !ok && !errors.Is(err, os.ErrNotExist) || hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

// parse returns the credentials that the plugin printed.
func (e *pluginRunner) parse(stdout []byte) (*pluginCredentials, error) {
	encoded, err := yaml.YAMLToJSON(stdout)
	if err != nil {
		return nil, errors.New("its output is no ExecCredential") // the output is secret
	}
	var printed credentialDocument
	if err := Unmarshal(encoded, &printed); err != nil {
		return nil, fmt.Errorf("its output is no ExecCredential: %w", err)
	}
	if printed.Kind != "ExecCredential" || printed.APIVersion != e.config.APIVersion {
		return nil, fmt.Errorf("it printed a %q of %q, not an ExecCredential of %s",
			printed.Kind, printed.APIVersion, e.config.APIVersion)
	}
	status := printed.Status
	switch {
	case status == nil:
		return nil, errors.New("it printed an ExecCredential without a status")
	case status.Token == "" && status.ClientCertificateData == "" && status.ClientKeyData == "":
		return nil, errors.New("it printed neither a token nor a client certificate")
	case (status.ClientCertificateData == "") != (status.ClientKeyData == ""):
		return nil, errors.New("it printed only one of a client certificate and its key")
	}
	r := &pluginCredentials{token: status.Token}
	if status.ExpirationTimestamp != nil {
		r.expires = *status.ExpirationTimestamp
	}
	if status.ClientCertificateData != "" {
		pair, err := tls.X509KeyPair([]byte(status.ClientCertificateData), []byte(status.ClientKeyData))
		if err != nil {
			return nil, fmt.Errorf("its client certificate: %w", err)
		}
		r.certificate = &pair
	}
	return r, nil
}
