// Package site has what tests of installers share: a cluster in which a program with webhooks and conversions is
// installed and removed again and again.
package site

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/yaretest"
)

// What the tests install: the release, its namespace, and the definition of the program.
const (
	Release    = "one"
	Namespace  = "one-system"
	Definition = "cronjobs.batch.tutorial.example.com"

	resourceV1 = "cronjobs.v1.batch.tutorial.example.com"
)

// Site is the cluster. A process with the account of the installation is the Pod of the program.
type Site struct {
	*yaretest.Cluster
	t       *testing.T
	network *network
	// processes are the processes of the installation. API servers call the last one, and the others end.
	processes []*yaretest.Process
}

// New returns a site on a control plane of its own.
func New(t *testing.T) *Site {
	t.Helper()
	cluster, network := newCluster(t)
	return &Site{Cluster: cluster, t: t, network: network}
}

// Start starts a process of the installation, and waits until the process converts, validates and completes objects.
// Then an earlier process ends.
func (s *Site) Start(program string) {
	s.t.Helper()
	token := strings.TrimSpace(s.Kubectl(s.t, "", "create", "token", Release, "--namespace", Namespace, "--duration=1h"))
	config := s.Config()
	kubeconfig := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: %s}}]
users: [{name: u, user: {token: %s}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
`, Namespace, token, config.Host, base64.StdEncoding.EncodeToString(config.CAData)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	process := yaretest.Run(s.t, kubeconfig, program, "run", "--leader-elect", "--lease-duration=10s",
		"--webhooks="+address, "--webhook-service="+Release)
	s.network.program.Store(address)
	yaretest.Eventually(s.t, func() error {
		_, stderr, err := s.TryKubectl(s.t, CronJob("v1", "wrong", "61 * * * *"), "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(stderr, "spec.schedule: Invalid value") {
			return fmt.Errorf("a wrong schedule: %w, %s", cmp.Or(err, errors.New("it was accepted")), stderr)
		}
		policy, stderr, err := s.TryKubectl(s.t, CronJob("v2", "plain", "* * * * *"), "create", "--dry-run=server",
			"-f", "-", "-o", "jsonpath={.spec.jobTemplate.spec.template.spec.restartPolicy}")
		if err != nil || policy != "OnFailure" {
			return fmt.Errorf("the restart policy %q: %w, %s", policy, cmp.Or(err, errors.New("it is not the default")), stderr)
		}
		return nil
	})
	for _, earlier := range s.processes {
		earlier.Signal(s.t, syscall.SIGTERM) // a rolling update ends a Pod when its successor is ready
	}
	s.processes = append(s.processes, process)
}

// MustServe fails the test unless objects of both versions can be written and read in both versions.
func (s *Site) MustServe() {
	s.t.Helper()
	for _, version := range []string{"v1", "v2"} {
		s.Kubectl(s.t, CronJob(version, "in-"+version, "5 * * * *"), "apply", "--server-side", "--force-conflicts", "-f", "-")
		for _, other := range []string{"v1", "v2"} {
			s.Kubectl(s.t, "", "get", "cronjobs."+other+".batch.tutorial.example.com", "in-"+version)
		}
	}
}

// End ends the process as a kubelet does, after the Deployment is gone.
func (s *Site) End() {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		found := s.Kubectl(s.t, "", "get", "deployments", "--namespace", Namespace, "--ignore-not-found", "-o", "name")
		if found != "" {
			return errors.New(found + " is there")
		}
		return nil
	})
	s.processes[len(s.processes)-1].Signal(s.t, syscall.SIGTERM)
	for _, process := range s.processes {
		if status := process.Wait(s.t); status != 0 && !s.hasLostLease(process) {
			s.t.Errorf("the program ended with the status %d: %q", status, process.Log())
		}
	}
	s.processes = nil
	s.network.program.Store("")
}

// hasLostLease reports whether the Namespace has ended, and has taken along the Lease of a process.
func (s *Site) hasLostLease(process *yaretest.Process) bool {
	s.t.Helper()
	phase := s.Kubectl(s.t, "", "get", "namespace", Namespace, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
	return phase != "Active" && slices.ContainsFunc(process.Log(), func(line string) bool {
		return strings.Contains(line, "the lease "+Namespace+"/cronjob is lost")
	})
}

// MustLeaveNothing fails the test unless objects can be created, read, changed and deleted in the stored version, and
// unless all that the installation has made is gone. The objects of the given names must be there.
func (s *Site) MustLeaveNothing(objects ...string) {
	s.t.Helper()
	// API servers see the end of a configuration a moment later.
	yaretest.Eventually(yaretest.Within(s.t, 10*time.Second), func() error {
		_, stderr, err := s.TryKubectl(s.t, CronJob("v1", "afterwards", "61 * * * *"), "create", "-f", "-")
		if err != nil {
			return fmt.Errorf("a write after the removal: %s", stderr)
		}
		return nil
	})
	const change = `{"spec":{"schedule":"62 * * * *"}}`
	s.Kubectl(s.t, "", "patch", resourceV1, "afterwards", "--type=merge", "-p", change)
	s.Kubectl(s.t, "", "get", resourceV1)
	s.Kubectl(s.t, "", "delete", resourceV1, "afterwards")
	for _, name := range objects {
		s.Kubectl(s.t, "", "patch", resourceV1, name, "--type=merge", "-p", change)
		s.Kubectl(s.t, "", "delete", resourceV1, name)
	}
	yaretest.Eventually(s.t, func() error {
		phase := s.Kubectl(s.t, "", "get", "namespace", Namespace, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
		if phase == "Terminating" {
			return errors.New("the Namespace ends")
		}
		// The collector deletes what the Deployment owns.
		const kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations,secrets,services,serviceaccounts," +
			"roles,rolebindings,clusterroles,clusterrolebindings"
		for name := range strings.Lines(s.Kubectl(s.t, "", "get", kinds, "--all-namespaces", "-o", "name")) {
			_, name, _ := strings.Cut(strings.TrimSpace(name), "/")
			if name == Release || strings.HasPrefix(name, Release+".") || strings.HasPrefix(name, Release+"-") {
				return errors.New(name + " is left")
			}
		}
		return nil
	})
}

// DeleteObjects deletes all objects of the program, while the program runs.
func (s *Site) DeleteObjects() {
	s.t.Helper()
	s.Kubectl(s.t, "", "delete", resourceV1, "--all-namespaces", "--all", "--timeout=60s")
}

// MustRemoveEverything fails the test unless the definition, the Namespace and all else that the program has printed
// and made are gone, and unless objects can be written after the program has defined them again.
func (s *Site) MustRemoveEverything(program string) {
	s.t.Helper()
	yaretest.Eventually(s.t, func() error {
		left := s.Kubectl(s.t, "", "get", "crd/"+Definition, "namespace/"+Namespace, "--ignore-not-found", "-o", "name")
		if left != "" {
			return errors.New(left + "is left")
		}
		return nil
	})
	s.Kubectl(s.t, Run(s.t, program, "crd"), "apply", "--server-side", "-f", "-")
	s.MustLeaveNothing()
	s.Kubectl(s.t, "", "delete", "crd/"+Definition, "--timeout=60s")
}

// CronJob returns a CronJob in a version.
func CronJob(version, name, schedule string) string {
	if version == "v2" {
		fields := strings.Fields(schedule)
		schedule = fmt.Sprintf("{minute: %q, hour: %q, dayOfMonth: %q, month: %q, dayOfWeek: %q}",
			fields[0], fields[1], fields[2], fields[3], fields[4])
	} else {
		schedule = strconv.Quote(schedule)
	}
	return fmt.Sprintf(`apiVersion: batch.tutorial.example.com/%s
kind: CronJob
metadata: {name: %s, namespace: default}
spec:
  schedule: %s
  suspend: true
  jobTemplate: {spec: {template: {spec: {containers: [{name: work, image: example.com/work}]}}}}
`, version, name, schedule)
}
