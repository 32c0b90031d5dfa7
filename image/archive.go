package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeLayout writes an index under a name as an OCI image layout into a folder. It returns the size of all its parts
// together.
func writeLayout(dir, name string, index v1.ImageIndex) (bytes int64, err error) {
	path, err := ocilayout.Write(dir, empty.Index)
	if err != nil {
		return 0, err
	}
	err = path.AppendIndex(index, ocilayout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name,
	}))
	if err != nil {
		return 0, err
	}
	blobs, err := fs.Glob(os.DirFS(dir), "blobs/sha256/*")
	for _, blob := range blobs {
		info, err := os.Stat(filepath.Join(dir, blob))
		if err != nil {
			return 0, err
		}
		bytes += info.Size()
	}
	return bytes, err
}

// dockerManifest returns the manifest.json of an archive for Docker. It names the first image of the index.
func dockerManifest(name string, index v1.ImageIndex) ([]byte, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	first, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	blobPath := func(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }
	var layers []string
	for _, layer := range first.Layers {
		layers = append(layers, blobPath(layer.Digest))
	}
	return json.Marshal([]map[string]any{
		{"Config": blobPath(first.Config.Digest), "RepoTags": []string{name}, "Layers": layers},
	})
}

// writeArchive writes a file that holds the image of an OCI image layout. After an error the file is as it was.
//
// The file is the layout in a tar archive, which containerd, Podman, Skopeo and Docker with
// containerd's image store import. For Docker's older store it also has a manifest.json, which
// names only one platform: the first one.
func writeArchive(path, dir string, docker []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".image-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(file.Name())
	err = writeTar(file, os.DirFS(dir), docker)
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

// writeTar writes the files of a layout and manifest.json. All have the same time, so that the same image gives the
// same archive.
func writeTar(out io.Writer, files fs.FS, docker []byte) error {
	w := tar.NewWriter(out)
	epoch := time.Unix(0, 0)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: epoch})
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return writeFile(w, name, 0o644, epoch, content)
	})
	if err == nil {
		err = writeFile(w, "manifest.json", 0o644, epoch, docker)
	}
	return errors.Join(err, w.Close())
}
