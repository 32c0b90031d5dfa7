package kubebuilder

import (
	"strings"
	"testing"
)

// The arguments of Deployments that kubebuilder's scaffold and its patches print.
func TestTranslate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ args, want, warning string }{
		{"--leader-elect --health-probe-bind-address=:8081", "--leader-elect=true --listen-probes=:8081", ""},
		{"--leader-elect=false --leader-election-id=x", "", ""},
		{"--leader-elect --leader-election-id x.example.com --leader-election-namespace=y", "--leader-elect=true --lease-name=x.example.com --lease-namespace=y", ""},
		{"--metrics-bind-address=:8443", "--listen-secure=:8443", ""},
		{"--metrics-bind-address=:8443 --metrics-secure", "--listen-secure=:8443", ""},
		{"--metrics-bind-address=:8080 --metrics-secure=false", "--listen=:8080", ""},
		{"--metrics-bind-address=0 --metrics-secure=true", "", ""},
		{"--metrics-bind-address=:8443 --metrics-cert-path=/c", "--listen-secure=:8443 --tls-cert=/c/tls.crt --tls-key=/c/tls.key", ""},
		{"--metrics-bind-address=:8443 --metrics-cert-path=/c --metrics-cert-name=a --metrics-cert-key=b", "--listen-secure=:8443 --tls-cert=/c/a --tls-key=/c/b", ""},
		{"--metrics-bind-address=:8080 --metrics-secure=false --metrics-cert-path=/c", "--listen=:8080", "without TLS"},
		{"--metrics-cert-path=/c", "", "no metrics are served"},
		{"--webhook-cert-path=/tmp/certs", "--webhooks=:9443 --webhook-cert=/tmp/certs/tls.crt --webhook-key=/tmp/certs/tls.key", ""},
		{"--webhooks=:1 --webhook-cert-path=/c --webhook-cert-key=k", "--webhooks=:1 --webhook-cert=/c/tls.crt --webhook-key=/c/k", ""},
		{"--webhook-port=9444", "--webhooks=:9444", ""},
		{"--webhook-port 9444 --webhook-cert-path=/c", "--webhooks=:9444 --webhook-cert=/c/tls.crt --webhook-key=/c/tls.key", ""},
		{"--zap-devel", "--v=true", ""},
		{"--zap-devel --zap-log-level=info", "", ""},
		{"-zap-log-level 4 -zap-encoder=json", "--v=4", ""},
		{"--zap-log-level=error", "", "begins at the level info"},
		{"--zap-encoder=console --zap-stacktrace-level=panic --zap-time-encoding=iso8601", "", "text on a terminal"},
		{"--enable-http2=false", "", ""},
		{"--enable-http2", "", "HTTP/1.1"},
		{"manifests --image a:1 --leader-elect", "manifests --image a:1 --leader-elect=true", ""},
		{"run --bucket b -- --zap-devel", "run --bucket b -- --zap-devel", ""},
	} {
		got, warnings, err := translate(strings.Fields(test.args), nil)
		if text := strings.Join(got, " "); err != nil || text != test.want {
			t.Errorf("%s: got %s, error %v, want %s", test.args, text, err, test.want)
		}
		if text := strings.Join(warnings, "\n"); (text == "") != (test.warning == "") || !strings.Contains(text, test.warning) {
			t.Errorf("%s: warnings %q, want %q", test.args, warnings, test.warning)
		}
	}
	own, _, err := translate(strings.Fields("--webhook-cert-path /c --webhook-port=1 --zap-devel"), []string{"webhook-cert-path", "webhook-port"})
	if text := strings.Join(own, " "); err != nil || text != "--webhook-cert-path /c --webhook-port=1 --v=true" {
		t.Errorf("flags of the program itself: %s, error %v", text, err)
	}
	for args, want := range map[string]string{
		"--metrics-secure=perhaps": "write true or false", "--metrics-bind-address": "has no value",
		"--zap-log-level=loud": "write debug, info", "--zap-encoder=xml": "write json or console",
	} {
		if _, _, err := translate(strings.Fields(args), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
}
