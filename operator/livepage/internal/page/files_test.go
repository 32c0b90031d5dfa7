package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"
)

// A browser gets the compressed files, so they must have the content of the files that authors read.
func TestFilesAreCompressed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"style.css", "script.js"} {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE_FILES") != "" {
			var compressed bytes.Buffer
			w, _ := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
			_, _ = w.Write(want)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name+".gz", compressed.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		compressed, err := os.Open(name + ".gz")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = compressed.Close() })
		r, err := gzip.NewReader(compressed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s.gz is not the compressed %s (%v): UPDATE_FILES=1 go test -run TestFilesAreCompressed ./operator/livepage/internal/page writes it", name, name, err)
		}
	}
}
