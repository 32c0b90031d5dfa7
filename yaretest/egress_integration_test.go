package yaretest_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yare-go/yare/yaretest"
)

// machineAddress returns an address of this machine that is no loopback address, or skips t.
func machineAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Skip("this machine has loopback addresses only")
	return ""
}

// Without a real node the addresses of Services and Pods are made up, and may belong to somebody else in the network of the machine.
// Bug: the API server dialed them, so that a gateway could get an AdmissionReview with a Secret.
func TestAPIServerDialsLoopbackAddressesOnly(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defer func() {
		if t.Failed() {
			time.Sleep(3 * time.Second)
			yaretest.Shared(t)
		}
	}()
	namespace := cluster.Namespace(t)
	address := machineAddress(t)
	port, dials := countDials(t, address)
	urlPort, urlDials := countDials(t, address)
	local := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "local") }))
	t.Cleanup(local.Close)
	_, localPort, _ := net.SplitHostPort(local.Listener.Addr().String())

	cluster.Kubectl(t, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: far, namespace: %[1]s}
spec: {type: ExternalName, externalName: %[2]s, ports: [{port: %[3]s}]}
---
apiVersion: v1
kind: Service
metadata: {name: near, namespace: %[1]s}
spec: {type: ExternalName, externalName: localhost, ports: [{port: %[4]s}]}
---
apiVersion: v1
kind: Service
metadata: {name: addressed, namespace: %[1]s}
spec: {ports: [{port: 443}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: %[1]s}
spec: {schedulerName: nobody, containers: [{name: web, image: web}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: far.%[1]s}
webhooks:
%[5]s%[6]s---
%[7]s---
%[8]s`, namespace, address, port, localPort, serviceWebhook("far", namespace, port, "secrets"), serviceWebhook("addressed", namespace, "443", "configmaps")+
		urlWebhook("https://"+net.JoinHostPort(address, urlPort), namespace, "serviceaccounts"),
		apiService("far", namespace, port), apiService("near", namespace, localPort)), "apply", "-f", "-")
	t.Cleanup(func() {
		cluster.Kubectl(t, "", "delete", "validatingwebhookconfiguration", "far."+namespace)
		cluster.Kubectl(t, "", "delete", "apiservice", "v1.far."+namespace, "v1.near."+namespace)
	})
	cluster.Kubectl(t, fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%[1]q}]}}`, address),
		"patch", "pod", "web", "-n", namespace, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")

	saysWhy := func(args ...string) {
		t.Helper()
		yaretest.Eventually(t, func() error {
			out, errs, err := cluster.TryKubectl(t, "", args...)
			if !strings.Contains(out+errs, "a url with 127.0.0.1") {
				return fmt.Errorf("kubectl %s: %s, %s, %w", args, out, errs, err)
			}
			return nil
		})
	}
	saysWhy("get", "--raw", "/api/v1/namespaces/"+namespace+"/pods/web:"+port+"/proxy/")
	saysWhy("create", "secret", "generic", "s", "-n", namespace)
	saysWhy("create", "configmap", "m", "-n", namespace)
	saysWhy("get", "apiservice", "v1.far."+namespace, "-o", "yaml")
	yaretest.Eventually(t, func() error {
		if out, errs, err := cluster.TryKubectl(t, "", "get", "--raw", "/apis/near."+namespace+"/v1"); out != "local" {
			return fmt.Errorf("an aggregated API at localhost: %s, %s, %w", out, errs, err)
		}
		return nil
	})
	// A url names its host, so the API server dials it as every API server does.
	if _, errs, err := cluster.TryKubectl(t, "", "create", "serviceaccount", "s", "-n", namespace); err == nil || urlDials.Load() == 0 {
		t.Errorf("the API server has not dialed the url of a webhook: %s, %v", errs, err)
	}
	if n := dials.Load(); n != 0 {
		t.Errorf("the API server has dialed %s %d times", address, n)
	}
}

// countDials listens at an address, and closes each connection. It returns the port, and the number of connections so far.
func countDials(t *testing.T, address string) (port string, dials *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	dials = new(atomic.Int32)
	go func() { // it ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			dials.Add(1)
			_ = conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port, dials
}

// serviceWebhook returns an entry of a ValidatingWebhookConfiguration with a Service.
func serviceWebhook(service, namespace, port, resource string) string {
	return webhookEntry(service, fmt.Sprintf("service: {name: %s, namespace: %s, port: %s, path: /}", service, namespace, port), namespace, resource)
}

// urlWebhook returns an entry of a ValidatingWebhookConfiguration with a URL.
func urlWebhook(url, namespace, resource string) string {
	return webhookEntry("url", fmt.Sprintf("url: %q", url), namespace, resource)
}

// webhookEntry returns an entry for the creations of a resource in a namespace.
func webhookEntry(name, target, namespace, resource string) string {
	return fmt.Sprintf(`- name: %[1]s.example.com
  clientConfig: {%[2]s}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [%[4]s], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, target, namespace, resource)
}

// apiService returns an APIService of the group SERVICE.NAMESPACE.
func apiService(service, namespace, port string) string {
	return fmt.Sprintf(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.%[1]s.%[2]s}
spec:
  group: %[1]s.%[2]s
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {name: %[1]s, namespace: %[2]s, port: %[3]s}
`, service, namespace, port)
}
