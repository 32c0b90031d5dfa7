package main

import (
	"archive/tar"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user and the group that programs run as. Kubernetes can check a number without a
// user database (runAsNonRoot).
const user = "65532:65532"

// certificatesPath is where Go programs, and most others, look for root certificates on Linux.
const certificatesPath = "etc/ssl/certs/ca-certificates.crt"

// assemble returns the index of the images of all binaries, each with its bill of materials. It
// reports the size of each image.
func assemble(binaries []binary, certificates bool, report io.Writer) (v1.ImageIndex, error) {
	var index v1.ImageIndex = empty.Index
	for _, b := range binaries {
		image, err := b.image(certificates)
		if err != nil {
			return nil, fmt.Errorf("make the image for %s: %w", b.platform, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return nil, err
		}
		attestation, err := b.attestation(digest, certificates)
		if err != nil {
			return nil, fmt.Errorf("make the bill of materials for %s: %w", b.platform, err)
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
				Platform: &v1.Platform{OS: "linux", Architecture: b.platform.arch},
			}},
			mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{
				Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"},
				Annotations: map[string]string{
					"vnd.docker.reference.type":   "attestation-manifest",
					"vnd.docker.reference.digest": digest.String(),
				},
			}})
		layers, err := image.Layers()
		if err != nil {
			return nil, err
		}
		size, err := layers[0].Size()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(report, "yare: /%s for %s: %.1f MB, compressed %.1f MB\n",
			b.name, b.platform, float64(len(b.content))/1e6, float64(size)/1e6)
		if _, missing := b.licenceTexts(); len(missing) > 0 {
			fmt.Fprintf(report,
				"yare: no licence text was found of %s: add what its licence demands to the image by other means\n",
				strings.Join(missing, ", "))
		}
	}
	return mutate.Annotations(index, binaries[0].labels()).(v1.ImageIndex), nil
}

// newImage returns an OCI image of one layer.
func newImage(config *v1.ConfigFile, layer mutate.Addendum) (v1.Image, error) {
	config.RootFS.Type = "layers"
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return nil, err
	}
	image = mutate.MediaType(image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	return mutate.Append(image, layer)
}

// writeFile writes a file that root owns to a tar archive.
func writeFile(w *tar.Writer, name string, mode int64, modified time.Time, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, ModTime: modified, Size: int64(len(content))}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// rootCertificates returns the certificates that Mozilla trusts, in PEM. They come with this
// program, so that the machine that makes an image does not matter. A certificate that Mozilla
// trusts in part only is left out, because a file in PEM cannot express the constraint.
func rootCertificates() []byte {
	var all []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return all
}
