package yaretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/internal/plane/process"
)

// manifestsTimeout is how long a program may take to print its manifests.
const manifestsTimeout = 20 * time.Second

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
