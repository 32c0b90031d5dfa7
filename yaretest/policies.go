package yaretest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/internal/plane/process"
)

// manifestsTimeout is how long a program may take to print its manifests.
const manifestsTimeout = 20 * time.Second

// ApplyPolicies applies the admission policies that a program prints among its manifests, such as those of the parts of
// package operator/admissionpolicy. [RunParts] applies the policies of its parts by itself. path is the program, as
// [Build] has compiled it. args are flags of its subcommand manifests, which also gets --image and the namespace of the
// test. Define the kinds that the policies are about before: see [Cluster.Define].
//
//	yaretest.Define[WebApp](t, cluster)
//	namespace := cluster.Namespace(t)
//	cluster.ApplyPolicies(t, yaretest.Build(t, "."))
//
// The policies concern objects in the namespaces of t alone, as [RunParts] has them, and objects outside of namespaces.
// So tests with the same policies can run in parallel. In this cluster the names of the policies end with the first
// namespace. ApplyPolicies returns when the API server enforces the policies, also those of a kind that was defined a
// moment ago. It deletes them after t.
//
// A mistake that the type check of the API server finds in an expression fails t, and the error names the policy and
// the expression. So does a program that prints no policy. Other manifests are not applied, such as a ConfigMap with
// parameters of a policy: the test creates it.
func (c *Cluster) ApplyPolicies(t testing.TB, path string, args ...string) {
	t.Helper()
	policies, err := printedPolicies(t.Context(), path,
		append([]string{"--namespace", c.ownNamespace(t.Name(), "default")}, args...))
	if err != nil {
		t.Fatal(err)
	}
	c.applyPolicies(t, policies)
}

// applyPolicies applies policies, narrowed to the namespaces of t, and returns when the API server enforces them. It
// deletes them after t.
func (c *Cluster) applyPolicies(t testing.TB, policies []unstructured.Unstructured) {
	t.Helper()
	namespaces := c.programNamespaces(t.Name())
	suffix := strings.ToLower(rand.Text())
	if len(namespaces) > 0 {
		suffix = namespaces[0]
	}
	policies, err := policy.Narrow(policies, suffix, corev1.LabelMetadataName, namespaces)
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(t)
	t.Cleanup(func() {
		// The context of the test has ended.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := policy.Remove(ctx, client, policies); err != nil && c.err() == nil {
			t.Logf("policies are left behind: %v", err)
		}
	})
	timeout := timeoutOf(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout,
		fmt.Errorf("the API server does not enforce the policies after %s", timeout))
	defer cancel()
	if err := policy.Apply(ctx, client, policies, func(text string) { t.Log(text) }); err != nil {
		t.Fatal(err)
	}
}

// printedPolicies returns the policies among the manifests that a program prints.
func printedPolicies(ctx context.Context, path string, args []string) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, manifestsTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(path, append([]string{"manifests", "--image", "test"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := process.Run(ctx, cmd); err != nil {
		return nil, fmt.Errorf("%s manifests: %w: %s", path, err, strings.TrimSpace(stderr.String()))
	}
	objects, err := manifest.Parse(stdout.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read what %s manifests prints: %w", path, err)
	}
	policies := policy.Select(objects)
	if len(policies) == 0 {
		return nil, errors.New(path + " manifests prints no admission policy: add a part of package operator/admissionpolicy")
	}
	return policies, nil
}
