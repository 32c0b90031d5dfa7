package history

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// words replaces the words of a run that differ between runs: namespaces, uids, generated names
// and IP addresses.
type words struct {
	dictionary
	names *Names
	// secretKey is the key of the hashes that stand for values of Secrets.
	secretKey []byte
}

// wordsOf returns the words of a run.
func wordsOf(h History) *words {
	w := &words{dictionary: newDictionary(), names: NewNames(h.Namespaces...), secretKey: h.SecretKey}
	for _, v := range h.Versions {
		object := w.objectOf(v)
		w.add(string(v.UID), "uid of "+object.String())
		if w.names.namespaces.replace(v.Name) != object.Name {
			w.add(v.Name, object.Name)
		}
		for _, address := range addressesOf(v) {
			w.add(address, "address of "+object.String())
		}
	}
	// The namespaces come last: no object that is named like a namespace replaces one.
	for _, namespace := range h.Namespaces {
		w.add(namespace, "*")
	}
	return w
}

// objectOf returns the resource and the normalized name of an object. The object shows whether its
// name was generated.
func (w *words) objectOf(v Version) faults.Object {
	o := faults.Object{Resource: v.Resource}
	u := v.Content()
	switch generateName := u.GetGenerateName(); {
	case generateName != "" && strings.HasPrefix(v.Name, generateName):
		base := w.names.Normalize(strings.TrimSuffix(generateName, "-"))
		o.Name = strings.TrimSuffix(base, "-*") + "-*"
	case hasHashInName(u):
		o.Name = w.names.Normalize(v.Name)
	default:
		o.Name = w.names.normalizeFixed(v.Name)
	}
	return o
}

// hasHashInName reports whether the name of an object ends with the hash of a template, as the names of
// ReplicaSets and ControllerRevisions do.
func hasHashInName(u *unstructured.Unstructured) bool {
	labels := u.GetLabels()
	for _, label := range []string{"pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash"} {
		if hash := labels[label]; hash != "" && strings.HasSuffix(u.GetName(), "-"+hash) {
			return true
		}
	}
	return false
}

// addressesOf returns the IP addresses that the cluster has given to a Service or a Pod.
func addressesOf(v Version) []string {
	var all []string
	for _, path := range [][]string{{"spec", "clusterIPs"}, {"status", "podIPs"}} {
		value, _, _ := unstructured.NestedFieldNoCopy(v.Object, path...)
		items, _ := value.([]any)
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				item = m["ip"]
			}
			if text, ok := item.(string); ok && isAddress(text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// isAddress reports whether text is an IP address.
func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// dictionary replaces whole words in texts. A word may contain any characters.
type dictionary struct {
	replacements map[string]string
	// longest is the length of the longest word, in bytes.
	longest int
}

func newDictionary() dictionary { return dictionary{replacements: make(map[string]string)} }

// add adds a word, or replaces the replacement of the word.
func (d *dictionary) add(word, replacement string) {
	if word != "" {
		d.replacements[word] = replacement
		d.longest = max(d.longest, len(word))
	}
}

// replace returns the text with each word replaced. If two words begin at the same place, the longer
// word is replaced. A word in the middle of letters and digits is not replaced.
func (d *dictionary) replace(text string) string {
	var replaced strings.Builder
	rest := 0 // text[:rest] is in replaced
	for i := 0; i < len(text); i++ {
		if !isWordEdge(text, i) {
			continue
		}
		for end := min(len(text), i+d.longest); end > i; end-- {
			if !isWordEdge(text, end) {
				continue
			}
			if replacement, ok := d.replacements[text[i:end]]; ok {
				replaced.WriteString(text[rest:i])
				replaced.WriteString(replacement)
				rest, i = end, end-1
				break
			}
		}
	}
	if rest == 0 {
		return text
	}
	replaced.WriteString(text[rest:])
	return replaced.String()
}

// isWordEdge reports whether a word may begin or end at an index of the text.
func isWordEdge(text string, i int) bool {
	return i == 0 || i == len(text) || !isAlphanumeric(text[i-1]) || !isAlphanumeric(text[i])
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
