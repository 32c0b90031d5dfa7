package pause

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Archive returns the image as a tar file, in the format of `docker save`.
func Archive(reference, architecture string) ([]byte, error) {
	executable, err := program(architecture)
	if err != nil {
		return nil, err
	}
	layer, err := tarOf(file{"pause", 0o755, executable})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": architecture,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/pause"}, "User": "65535:65535"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of the pause image: %w", err)
	}
	manifest, err := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{reference}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of the pause image: %w", err)
	}
	return tarOf(file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer},
		file{"manifest.json", 0o644, manifest})
}

type file struct {
	name string
	mode int64
	data []byte
}

func tarOf(files ...file) ([]byte, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data))}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("write the pause image: %w", err)
		}
		if _, err := writer.Write(f.data); err != nil {
			return nil, fmt.Errorf("write the pause image: %w", err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("write the pause image: %w", err)
	}
	return archive.Bytes(), nil
}
