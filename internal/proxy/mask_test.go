package proxy

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"
)

// archiveOf returns a ZIP archive with a file, in base64.
func archiveOf(t *testing.T, content string) string {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	file, err := w.Create("original")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(archive.Bytes())
}

// An operator of Redis keeps what it has applied last in an annotation, as an archive. The archive has the uid of the owner. So no
// write of the operator was the same in two runs, and no fault happened at any write.
func TestArchivesAreMasked(t *testing.T) {
	t.Parallel()
	hash := func(namespace, uid, image string) string {
		applied := fmt.Sprintf(`{"metadata":{"namespace":%q,"ownerReferences":[{"uid":%q}]},"spec":{"image":%q}}`, namespace, uid, image)
		change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"last-applied": archiveOf(t, applied)}}}
		return newMask(namespace, nil).hash(change, "statefulsets.apps")
	}
	first := hash("run-1", "0d9e8f2a-4d3b-4c44-9f12-8a6c3f0f5b11", "redis:7")
	if second := hash("run-2", "5b1c2d3e-aaaa-4bbb-8ccc-0123456789ab", "redis:7"); second != first {
		t.Error("archives that differ in the uid and in the namespace have different hashes")
	}
	if other := hash("run-1", "0d9e8f2a-4d3b-4c44-9f12-8a6c3f0f5b11", "redis:8"); other == first {
		t.Error("archives with different images have the same hash")
	}
}

// A text that begins as an archive, and is none, is a text.
func TestBrokenArchivesAreTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"UEsDB", "UEsDBA==", "UEsDB!", archiveOf(t, "no JSON")} {
		if _, isArchive := ArchivedJSON(text); isArchive {
			t.Errorf("%q is an archive", text)
		}
	}
}
