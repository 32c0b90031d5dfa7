package page

import (
	"strings"
	"time"

	"github.com/yare-go/yare/controller"
)

const (
	// maxError bounds the text of one error, in bytes.
	maxError = 1 << 10
	// maxReads and maxWrites bound what one reconcile shows of its requests.
	maxReads  = 8
	maxWrites = 32
)

// objectName names an object on the page: by its kind, namespace and name.
type objectName struct {
	Kind, Namespace, Name string
}

// text returns the name as the causes of reconciles have it, such as "Deployment default/web".
func (o objectName) text() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// reconcile is what the page keeps of one reconcile or cleanup. It does not change after it has ended.
type reconcile struct {
	// Number counts the ended reconciles of the program from 1 on.
	Number     uint64
	Ended      time.Time
	Controller string
	Object     objectName
	IsCleanup  bool
	// Causes are the causes as the log has them.
	Causes                 string
	Waited, Duration, Next time.Duration
	Outcome                controller.Outcome
	Error                  string
	Attempt                int
	// ReadCount is the number of all reads, and Reads are the first ones.
	ReadCount int
	Reads     []string
	// Writes are the first writes, and MoreWrites is the number of the others.
	Writes     []*write
	MoreWrites int
	// HasChanged is true if a write, which can be one of the others, was sent and has succeeded.
	HasChanged bool
}

// isAbout reports whether the reconcile is a part of the story of an object: it reconciled the object, wrote the
// object, or ran because of the object.
func (r *reconcile) isAbout(o objectName) bool {
	if r.Object == o {
		return true
	}
	for _, w := range r.Writes {
		if w.Object == o {
			return true
		}
	}
	for _, cause := range strings.Split(r.Causes, ", ") {
		if strings.HasPrefix(cause, o.text()+" ") {
			return true
		}
	}
	return false
}

// byteCount returns how much memory the reconcile takes.
func (r *reconcile) byteCount() int {
	count := 280 + len(r.Causes) + len(r.Error) + len(r.Object.Namespace) + len(r.Object.Name)
	for _, read := range r.Reads {
		count += 16 + len(read)
	}
	for _, w := range r.Writes {
		count += 256 + len(w.Resource) + len(w.Object.Namespace) + len(w.Object.Name) + len(
			w.Error) + w.Difference.byteCount()
		for _, c := range w.Conditions {
			count += 5*16 + len(c.Type) + len(c.Status) + len(c.Reason) + len(c.Message)
		}
	}
	return count
}
