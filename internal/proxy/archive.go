package proxy

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
)

const (
	// zipPrefix is how the base64 of each ZIP archive begins.
	zipPrefix = "UEsDB"
	// maxArchived is how many bytes of a file in an archive are looked at.
	maxArchived = 8 << 20
)

// ArchivedJSON returns the JSON value in a text that is a ZIP archive with one file, in base64. It reports false for
// any other text. Some programs keep what they have applied last in an annotation of this form. The archives of two
// runs differ, because the file has uids and the namespace.
func ArchivedJSON(text string) (value any, isArchive bool) {
	if !strings.HasPrefix(text, zipPrefix) {
		return nil, false
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil || len(archive.File) != 1 {
		return nil, false
	}
	file, err := archive.File[0].Open()
	if err != nil {
		return nil, false
	}
	defer file.Close()
	if err := json.NewDecoder(io.LimitReader(file, maxArchived)).Decode(&value); err != nil {
		return nil, false
	}
	return value, true
}
