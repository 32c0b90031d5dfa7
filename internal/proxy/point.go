package proxy

import (
	"fmt"
	"strings"
)

// Point names one request of a program, so that the same request is recognized in another run. Example: the
// second patch in step 0 of a ConfigMap whose generated name is page-x2x9k, with some content, has the point
//
//	{Step: 0, Verb: "patch", Resource: "configmaps", Name: "page-*", ChangeHash: "5f0c…", Occurrence: 2}
type Point struct {
	// Step is the index of the step of the user during which the program made the request.
	Step        int    `json:"step"`
	Verb        string `json:"verb"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Name is the normalized name of the object: random parts of generated names are replaced by
	// an asterisk. It is empty for lists and creates without a name.
	Name string `json:"name,omitempty"`
	// ChangeHash is a hash of the body without what differs between runs: uids, versions and times.
	// It is empty for reads.
	ChangeHash string `json:"changeHash,omitempty"`
	// Occurrence counts the requests of the step that are equal otherwise, from 1.
	Occurrence int `json:"occurrence"`
}

// IsWrite reports whether the request changes objects.
func (p Point) IsWrite() bool {
	switch p.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// maxHashInText is how many characters of the hash of a change stand in the text of a point.
const maxHashInText = 4

// String returns the point in a line, such as: patch deployments.apps web (step 1, content 5f0c, occurrence 2). The
// texts of two writes with different contents differ.
func (p Point) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", p.Verb, p.Resource)
	if p.Subresource != "" {
		b.WriteString("/" + p.Subresource)
	}
	if p.Name != "" {
		b.WriteString(" " + p.Name)
	}
	fmt.Fprintf(&b, " (step %d", p.Step+1)
	if p.ChangeHash != "" {
		fmt.Fprintf(&b, ", content %s", p.ChangeHash[:min(len(p.ChangeHash), maxHashInText)])
	}
	fmt.Fprintf(&b, ", occurrence %d)", p.Occurrence)
	return b.String()
}
