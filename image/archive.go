package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// blob is a part of an image: a manifest, a configuration or a layer.
type blob struct {
	digest  v1.Hash
	content []byte
}

// blobs are all parts of an index.
type blobs struct {
	// index describes the index itself. parts holds its content.
	index v1.Descriptor
	// parts holds each blob once.
	parts []blob
	// config and layers are the configuration and the layers of the first image.
	config v1.Hash
	layers []v1.Hash
}

// collect returns all parts of an index.
func collect(index v1.ImageIndex) (*blobs, error) {
	descriptor, err := partial.Descriptor(index)
	if err != nil {
		return nil, err
	}
	b := &blobs{index: *descriptor}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for i, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		if err := b.addImage(image, i == 0); err != nil {
			return nil, err
		}
	}
	raw, err := index.RawManifest()
	if err != nil {
		return nil, err
	}
	b.add(descriptor.Digest, raw)
	return b, nil
}

// addImage adds the parts of an image.
func (b *blobs) addImage(image v1.Image, isFirst bool) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		r, err := layer.Compressed()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		b.add(digest, content)
		if isFirst {
			b.layers = append(b.layers, digest)
		}
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	name, err := image.ConfigName()
	if err != nil {
		return err
	}
	b.add(name, config)
	if isFirst {
		b.config = name
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	b.add(digest, manifest)
	return nil
}

// add adds a part, unless b has it.
func (b *blobs) add(digest v1.Hash, content []byte) {
	for _, part := range b.parts {
		if part.digest == digest {
			return
		}
	}
	b.parts = append(b.parts, blob{digest, content})
}

// size returns the size of all parts together.
func (b *blobs) size() (bytes int64) {
	for _, part := range b.parts {
		bytes += int64(len(part.content))
	}
	return bytes
}

// writeArchive writes a file that holds an image of this name. After an error the file is as it was.
//
// The file is an OCI image layout in a tar archive, which containerd, Podman, Skopeo and Docker with
// containerd's image store import. For Docker's older store it also has a manifest.json, which
// names only one platform: the first one.
func writeArchive(path, name string, b *blobs) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".image-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(file.Name())
	err = b.writeTo(file, name)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// writeTo writes the archive.
func (b *blobs) writeTo(out io.Writer, name string) error {
	index := b.index
	index.Annotations = map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name,
	}
	indexJSON, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{index}})
	if err != nil {
		return err
	}
	type dockerImage struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	docker := dockerImage{Config: blobPath(b.config), RepoTags: []string{name}}
	for _, layer := range b.layers {
		docker.Layers = append(docker.Layers, blobPath(layer))
	}
	dockerJSON, err := json.Marshal([]dockerImage{docker})
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	epoch := time.Unix(0, 0)
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: epoch}); err != nil {
			return err
		}
	}
	for _, part := range b.parts {
		if err := writeFile(w, blobPath(part.digest), 0o644, epoch, part.content); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", indexJSON},
		{"manifest.json", dockerJSON},
	} {
		if err := writeFile(w, file.name, 0o644, epoch, file.content); err != nil {
			return err
		}
	}
	return w.Close()
}

// blobPath returns the path of a blob in an OCI image layout.
func blobPath(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }
