package workload

import "github.com/yare-go/yare/kube"

// NoteSpec is the desired state of a Note.
type NoteSpec struct {
	Text string `json:"text"`
}

// NoteStatus is the observed state of a Note.
type NoteStatus struct {
	// Text is the text that the ConfigMap of the Note has.
	Text string `json:"text"`
}

// Definition returns the definition of Notes.
func (NoteSpec) Definition() kube.Definition {
	return kube.Definition{Group: "soak.example.com", Version: "v1", Kind: "Note"}
}

// Note is the custom resource of the soak: a small object whose operator applies a ConfigMap with its
// text.
type Note = kube.CustomResource[NoteSpec, NoteStatus]
