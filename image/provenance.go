package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
)

// provenance is how an image was made (SLSA provenance, version 1, https://slsa.dev/spec/v1.0/provenance). It is the
// predicate of an attestation, which a tool such as cosign signs and pushes.
type provenance struct {
	Definition buildDefinition `json:"buildDefinition"`
	Run        runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	Type         string             `json:"buildType"`
	Parameters   externalParameters `json:"externalParameters"`
	Dependencies []dependency       `json:"resolvedDependencies"`
}

// externalParameters are what the user chose.
type externalParameters struct {
	Package        string   `json:"package"`
	Platforms      []string `json:"platforms"`
	CACertificates bool     `json:"caCertificates"`
}

// dependency is a thing that the image was made from.
type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// newProvenance returns the provenance of the image of binaries, which are of one commit. It has no time and no name of
// this machine, so the same image has the same provenance.
func newProvenance(binaries []binary, certificates bool) provenance {
	first := binaries[0]
	p := provenance{Definition: buildDefinition{
		Type:       "https://github.com/yare-go/yare/image/v1",
		Parameters: externalParameters{Package: first.info.Path, CACertificates: certificates},
	}}
	p.Run.Builder.ID = "https://github.com/yare-go/yare/image"
	for _, b := range binaries {
		p.Definition.Parameters.Platforms = append(p.Definition.Parameters.Platforms, b.platform.String())
	}
	add := func(uri string, digest map[string]string) {
		p.Definition.Dependencies = append(p.Definition.Dependencies, dependency{uri, digest})
	}
	if revision := first.setting("vcs.revision"); revision != "" {
		uri := "pkg:golang/" + first.info.Main.Path
		if source := sourceOf(first.info.Main.Path); source != "" {
			uri = "git+" + source
		}
		add(uri, map[string]string{"gitCommit": revision})
	}
	add("pkg:golang/stdlib@"+goVersion(first.info), nil)
	for _, m := range first.info.Deps {
		name, version, sum := compiledModule(m)
		add(packageURL(name, version), dirHash(sum))
	}
	return p
}

// dirHash returns the digest of a module with a hash of go.sum, as the DigestSet of in-toto has it, or nil without a
// hash.
func dirHash(sum string) map[string]string {
	text, isH1 := strings.CutPrefix(sum, "h1:")
	digest, err := base64.StdEncoding.DecodeString(text)
	if !isH1 || err != nil {
		return nil
	}
	return map[string]string{"dirHash": hex.EncodeToString(digest)}
}

// writeProvenance writes a provenance to a file.
func writeProvenance(file string, p provenance) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
