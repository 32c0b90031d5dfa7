package crd

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The decoders accept what the patterns accept: otherwise an object could be stored that no
// operator can read. The patterns refuse some odd texts that the decoders accept.
func TestPatternsAgreeWithDecoders(t *testing.T) {
	t.Parallel()
	odd := []string{".", "m"}
	quantity, duration := regexp.MustCompile(quantityPattern), regexp.MustCompile(durationPattern)
	for _, text := range []string{
		"", "0", "+0", "-0", "00", "1", "-1", "1.5", ".5", "5.", ".", "1e3", "1E3", "1e-3", "1e+3", "1E", "1e", "1Ei", "1k", "1K", "1Ki", "100m",
		"0.5Gi", "1n", "1u", "1.2.3", "1 ", " 1", "x", "1h", "1h30m", "1.5h", "300ms", "1us", "1µs", "1μs", "-5m", "+5m", "5", "5m5", "m", "1d", "1m-1s", "h1",
	} {
		_, err := resource.ParseQuantity(text)
		if got := quantity.MatchString(text); got != (err == nil) && !slices.Contains(odd, text) {
			t.Errorf("quantity %q: pattern %t, decoder %v", text, got, err)
		}
		_, err = time.ParseDuration(text)
		if got := duration.MatchString(text); got != (err == nil) {
			t.Errorf("duration %q: pattern %t, decoder %v", text, got, err)
		}
	}
}
