package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// spdxPredicate is the type of an in-toto statement that holds an SPDX document.
const spdxPredicate = "https://spdx.dev/Document"

// statement is an attestation about an image (in-toto attestation framework, version 0.1, which
// BuildKit writes).
type statement struct {
	Type          string       `json:"_type"`
	Subject       []subject    `json:"subject"`
	PredicateType string       `json:"predicateType"`
	Predicate     spdxDocument `json:"predicate"`
}

// subject is what a statement is about.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// spdxDocument is a bill of materials (SPDX 2.3, ISO/IEC 5962).
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string          `json:"name"`
	ID               string          `json:"SPDXID"`
	Version          string          `json:"versionInfo,omitempty"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	SourceInfo       string          `json:"sourceInfo,omitempty"`
	LicenseConcluded string          `json:"licenseConcluded"`
	LicenseDeclared  string          `json:"licenseDeclared"`
	Copyright        string          `json:"copyrightText"`
	References       []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// bill is the bill of materials of a binary.
type bill struct {
	name    string
	info    *debug.BuildInfo
	created time.Time
	// licences has the licences of modules, by their paths: see moduleLicences.
	licences map[string]licence
	// certificates is the file of root certificates in the image, or empty.
	certificates []byte
}

// certificatesModule is the module of this program from which the root certificates come.
const certificatesModule = "golang.org/x/crypto/x509roots/fallback"

// statement returns the statement that lists the modules of the image of the binary.
func (b bill) statement(image v1.Hash) ([]byte, error) {
	return json.Marshal(statement{
		Type:          "https://in-toto.io/Statement/v0.1",
		Subject:       []subject{{Name: b.name, Digest: map[string]string{image.Algorithm: image.Hex}}},
		PredicateType: spdxPredicate,
		Predicate:     b.document(image),
	})
}

// document returns the bill of materials: the main module of the binary, the modules that it was
// compiled from, the standard library, and the root certificates if the image has them.
func (b bill) document(image v1.Hash) spdxDocument {
	const document = "SPDXRef-DOCUMENT"
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: document, Name: b.name,
		Namespace: "https://spdx.org/spdxdocs/" + b.name + "-" + image.Hex,
		Creation:  spdxCreation{Created: b.created.Format(time.RFC3339), Creators: []string{"Tool: yare image"}},
	}
	add := func(p spdxPackage) (id string) {
		p.ID = fmt.Sprintf("SPDXRef-Package-%d", len(d.Packages))
		d.Packages = append(d.Packages, p)
		return p.ID
	}
	main := add(newPackage(b.info.Main.Path, b.info.Main.Version, "", b.licences[b.info.Main.Path].expression))
	d.Relationships = append(d.Relationships, spdxRelationship{document, "DESCRIBES", main})
	for _, m := range b.info.Deps {
		name, version, sum := compiledModule(m)
		d.Relationships = append(d.Relationships,
			spdxRelationship{main, "DEPENDS_ON", add(newPackage(name, version, sum, b.licences[m.Path].expression))})
	}
	d.Relationships = append(d.Relationships,
		spdxRelationship{main, "DEPENDS_ON", add(newPackage("stdlib", goVersion(b.info), "", "BSD-3-Clause"))})
	if len(b.certificates) > 0 {
		d.Relationships = append(d.Relationships,
			spdxRelationship{document, "DESCRIBES", add(certificatesPackage(b.certificates))})
	}
	return d
}

// goVersion returns the version of Go of a binary, such as 1.26.8. The binary may have the names of experiments behind
// it.
func goVersion(info *debug.BuildInfo) string {
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	return version
}

// packageURL returns the URL of a module, without a version that is not known.
func packageURL(name, version string) string {
	if version == "" || version == "(devel)" {
		return "pkg:golang/" + name
	}
	return "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// certificatesPackage returns the package of the file of root certificates. Its list is that of Mozilla (MPL-2.0), as
// the module of this program has it.
func certificatesPackage(content []byte) spdxPackage {
	version := ""
	if own, ok := debug.ReadBuildInfo(); ok {
		for _, m := range own.Deps {
			if m.Path == certificatesModule {
				_, version, _ = compiledModule(m)
			}
		}
	}
	p := newPackage(certificatesModule, version, "", "MPL-2.0 AND BSD-3-Clause")
	p.Name = "ca-certificates"
	digest := sha256.Sum256(content)
	p.Checksums = []spdxChecksum{{"SHA256", hex.EncodeToString(digest[:])}}
	return p
}

// compiledModule returns the path, the version and the hash in go.sum of the code that is compiled for the module m.
func compiledModule(m *debug.Module) (path, version, sum string) {
	switch {
	case m.Replace == nil:
		return m.Path, m.Version, m.Sum
	case m.Replace.Version == "":
		return m.Path, "", "" // a folder
	}
	return m.Replace.Path, m.Replace.Version, m.Replace.Sum
}

// newPackage returns a package of a document, without its ID. version is empty or "(devel)" if it is not known. sum is
// as in go.sum, such as h1:…, which is the hash of a list of the files with their hashes. sum and licence may be
// empty.
func newPackage(name, version, sum, licence string) spdxPackage {
	p := spdxPackage{
		Name: name, DownloadLocation: "NOASSERTION", Copyright: "NOASSERTION",
		LicenseConcluded: unknownLicence, LicenseDeclared: cmp.Or(licence, unknownLicence),
	}
	if version != "(devel)" {
		p.Version = version
	}
	p.References = []spdxReference{{"PACKAGE-MANAGER", "purl", packageURL(name, version)}}
	if sum != "" { // not a checksum: SPDX has no algorithm that hashes a list of files
		p.SourceInfo = "the hash of the module in go.sum is " + sum
	}
	return p
}
