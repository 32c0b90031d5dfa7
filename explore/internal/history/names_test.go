package history_test

import (
	"testing"

	"github.com/yare-go/yare/explore/internal/history"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	names := history.NewNames("run-7", "run-7-install")
	for name, want := range map[string]string{
		"web":                 "web",
		"web-0":               "web-0",
		"web-config":          "web-config",
		"web-v1beta1":         "web-v1beta1",
		"web-5d4f8c9b7":       "web-*",
		"web-5d4f8c9b7-x2x9k": "web-*",
		"web-x2x9k":           "web-*",
		"import-2-x2x9k":      "import-2-*",
		"hello-29393940":      "hello-*",
		"config-3f9a2b0c":     "config-*",
		"backup-202401":       "backup-202401",
		"coffee-decade":       "coffee-decade",
		"x2x9k":               "x2x9k",
		"run-7":               "*",
		"run-7-web":           "*-web",
		"web-run-7":           "web-*",
		"run-70":              "run-70",
		"run-7-install":       "*",
		"web.run-7.svc":       "web.*.svc",
		"5d4f8c9b7-x2x9k":     "5d4f8c9b7-*",
		"":                    "",
		"pvc-6f1c0b3d-e0a9-4c27-8a11-0123456789ab": "pvc-*",
	} {
		if got := names.Normalize(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
