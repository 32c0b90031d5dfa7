package kube

import (
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplyOption changes how something is applied.
type ApplyOption interface{ changeApply(*writeOptions) }

// WriteOption changes how something is written: created, replaced, patched or applied.
type WriteOption interface {
	ApplyOption
	isWriteOption()
}

// writeOptions holds the result of all options of a write.
type writeOptions struct {
	isDryRun   bool
	manager    string
	isUnforced bool
	isStrict   bool
	isAdoption bool
}

type applyOption func(*writeOptions)

func (f applyOption) changeApply(o *writeOptions) { f(o) }

type writeOption func(*writeOptions)

func (f writeOption) changeApply(o *writeOptions) { f(o) }

func (writeOption) isWriteOption() {}

// DryRunOption is the type of [DryRun]. It is an option of writes and of deletes.
type DryRunOption struct{}

func (DryRunOption) isWriteOption()                       {}
func (DryRunOption) changeApply(o *writeOptions)          { o.isDryRun = true }
func (DryRunOption) changeDelete(o *metav1.DeleteOptions) { o.DryRun = []string{metav1.DryRunAll} }

// DryRun makes the server check and answer a write or a deletion without carrying it out.
func DryRun() DryRunOption { return DryRunOption{} }

// FieldManager records this write under another name than [Client.FieldManager].
func FieldManager(name string) WriteOption {
	return writeOption(func(o *writeOptions) { o.manager = name })
}

// NoForce makes an apply fail if another manager owns a field and wants another value: see
// [IsApplyConflict]. Without NoForce the apply takes over the fields, which is what Kubernetes
// recommends to controllers (https://kubernetes.io/docs/reference/using-api/server-side-apply/).
func NoForce() ApplyOption { return applyOption(func(o *writeOptions) { o.isUnforced = true }) }

// Strict makes the server refuse fields that it does not know, instead of dropping them.
func Strict() WriteOption { return writeOption(func(o *writeOptions) { o.isStrict = true }) }

// Adopt lets an apply that names a controlling owner take over an object that somebody else made, as a child of that
// owner. The garbage collector will delete the object with its owner. Without Adopt the apply is refused: see
// [ErrForeignChild]. An object that another owner controls is refused either way.
func Adopt() ApplyOption { return applyOption(func(o *writeOptions) { o.isAdoption = true }) }

// newWriteOptions returns the result of options for the writes, or for the applies, of a field manager.
func newWriteOptions[O ApplyOption](manager string, options []O) writeOptions {
	o := writeOptions{manager: manager}
	for _, option := range options {
		option.changeApply(&o)
	}
	return o
}

// query returns the parameters of a write.
func (o writeOptions) query() url.Values {
	q := url.Values{}
	if o.isDryRun {
		q.Set("dryRun", "All")
	}
	if o.manager != "" {
		q.Set("fieldManager", o.manager)
	}
	if o.isStrict {
		q.Set("fieldValidation", "Strict")
	}
	return q
}
