package main

import (
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
	References       []spdxReference `json:"externalRefs,omitempty"`
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
}

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
// compiled from, and the standard library.
func (b bill) document(image v1.Hash) spdxDocument {
	const document = "SPDXRef-DOCUMENT"
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: document, Name: b.name,
		Namespace: "https://spdx.org/spdxdocs/" + b.name + "-" + image.Hex,
		Creation:  spdxCreation{Created: b.created.Format(time.RFC3339), Creators: []string{"Tool: yare image"}},
	}
	add := func(name, version string) (id string) {
		id = fmt.Sprintf("SPDXRef-Package-%d", len(d.Packages))
		d.Packages = append(d.Packages, newPackage(id, name, version))
		return id
	}
	main := add(b.info.Main.Path, b.info.Main.Version)
	d.Relationships = append(d.Relationships, spdxRelationship{document, "DESCRIBES", main})
	for _, m := range b.info.Deps {
		name, version := compiledModule(m)
		d.Relationships = append(d.Relationships, spdxRelationship{main, "DEPENDS_ON", add(name, version)})
	}
	// A version of Go may have the names of experiments behind it.
	version, _, _ := strings.Cut(strings.TrimPrefix(b.info.GoVersion, "go"), " ")
	d.Relationships = append(d.Relationships, spdxRelationship{main, "DEPENDS_ON", add("stdlib", version)})
	return d
}

// compiledModule returns the path and the version of the code that is compiled for the module m.
func compiledModule(m *debug.Module) (path, version string) {
	switch {
	case m.Replace == nil:
		return m.Path, m.Version
	case m.Replace.Version == "":
		return m.Path, "" // a folder
	}
	return m.Replace.Path, m.Replace.Version
}

// newPackage returns a package of a document. version is empty or "(devel)" if it is not known.
func newPackage(id, name, version string) spdxPackage {
	p := spdxPackage{Name: name, ID: id, DownloadLocation: "NOASSERTION"}
	locator := "pkg:golang/" + name
	if version != "" && version != "(devel)" {
		p.Version = version
		locator += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	p.References = []spdxReference{{"PACKAGE-MANAGER", "purl", locator}}
	return p
}
