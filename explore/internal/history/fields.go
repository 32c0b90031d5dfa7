package history

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// field is a value of an object that has no parts of its own.
type field struct {
	// value is JSON, without the parts that differ between runs.
	value string
	// isOwned is true if the operator has written the field.
	isOwned bool
}

// fields are the fields of an object by their paths, such as spec.containers[name=web].image.
type fields map[string]field

// fieldsOf returns the fields of an object. Fields that only the server writes are left out.
func fieldsOf(v Version, w *words, owned ownership) fields {
	u := v.Content()
	f := &flattener{
		words: w, fields: make(fields), isSecret: v.Resource == "secrets", hasCustomGroup: hasCustomGroup(u.GetAPIVersion()),
		generation: u.GetGeneration(), created: u.GetCreationTimestamp().Time,
	}
	for name, value := range v.Object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			f.add(name, name, value, owned.member(name))
		}
	}
	metadata, _ := v.Object["metadata"].(map[string]any)
	for name, value := range metadata {
		switch name {
		case "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields":
		default:
			f.add("metadata."+name, name, value, owned.member("metadata").member(name))
		}
	}
	return f.fields
}

// flattener takes an object apart into its fields.
type flattener struct {
	words  *words
	fields fields
	// isSecret is true if the values of data must not be shown.
	isSecret bool
	// hasCustomGroup is true if the object is of a custom kind.
	hasCustomGroup bool
	generation     int64
	created        time.Time
}

// add adds the fields of a value at a path. key is the last name in the path.
func (f *flattener) add(path, key string, value any, owned ownership) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			// the exploration has added it; many programs copy annotations to their children
			if name == faults.ChangedAnnotation {
				continue
			}
			f.add(path+pathElement(f.words.replace(name)), name, inner, owned.member(name))
		}
		if len(value) > 0 {
			return
		}
	case []any:
		for i, item := range value {
			f.addItem(path, key, value, i, item, owned.item(i, item))
		}
		if len(value) > 0 {
			return
		}
	}
	if text, ok := f.valueOf(path, key, value); ok {
		f.fields[path] = field{text, owned.isOwned()}
	}
}

// addItem adds the fields of an item of a list. Finalizers are a set: their order has no meaning.
func (f *flattener) addItem(path, key string, list []any, i int, item any, owned ownership) {
	if path == "metadata.finalizers" {
		f.fields[path+"["+fmt.Sprint(item)+"]"] = field{jsonText(item), owned.isOwned()}
		return
	}
	at := strconv.Itoa(i)
	if name := itemKey(list); name != "" {
		at = name + "=" + f.words.replace(fmt.Sprint(item.(map[string]any)[name]))
	}
	f.add(path+"["+at+"]", key, item, owned)
}

// pathElement returns a member as a part of a path. Names that contain dots stand in brackets.
func pathElement(name string) string {
	if strings.ContainsAny(name, ".[]") {
		return "[" + name + "]"
	}
	return "." + name
}

// itemKey returns the member that distinguishes the items of a list. It is empty if no member does.
func itemKey(list []any) string {
	for _, name := range []string{
		"name", "type", "key", "mountPath", "devicePath", "containerPort", "port", "topologyKey", "uid", "ip",
	} {
		seen := make(map[any]bool)
		for _, item := range list {
			members, _ := item.(map[string]any)
			switch key := members[name].(type) {
			case string, int64, float64:
				seen[key] = true
			}
		}
		if len(seen) == len(list) {
			return name
		}
	}
	return ""
}

// These texts stand for values that differ between runs.
const (
	maskedVersion  = `"<resource version>"`
	maskedNode     = `"<node>"`
	maskedPort     = `"<node port>"`
	maskedTime     = `"<time>"`
	maskedAddress  = `"<address>"`
	maskedRevision = `"<revision>"`
)

// valueOf returns the JSON of a value without what differs between runs. It reports false if the
// field means nothing in another run.
func (f *flattener) valueOf(path, key string, value any) (string, bool) {
	text, isText := value.(string)
	switch {
	case path == "status.observedGeneration":
		if isSameJSON(value, f.generation) {
			return `"current"`, true
		}
		return `"behind"`, true
	case key == "observedGeneration", f.hasCustomGroup && isEmptyStatus(path, value):
		return "", false
	case key == "resourceVersion", strings.HasSuffix(key, "ResourceVersion"):
		return maskedVersion, true
	case key == "nodeName":
		return maskedNode, true
	case key == "nodePort", key == "healthCheckNodePort":
		return maskedPort, true
	case key == "deployment.kubernetes.io/revision":
		return maskedRevision, true
	case !isText:
		return jsonText(value), true
	case isArchive(text):
		return "", false
	case f.isSecret && strings.HasPrefix(path, "data"):
		return f.hashOfSecret(text), true
	case isAddressKey(key) && isAddress(text):
		return maskedAddress, true
	case f.isTimeOfRun(text):
		return maskedTime, true
	default:
		return jsonText(f.words.replace(text)), true
	}
}

// isArchive reports whether a text is an archive in which a program keeps what it has applied. The archive differs
// between runs, because it has uids and the namespace, and says no more than the object itself.
func isArchive(text string) bool {
	_, isArchive := proxy.ArchivedJSON(text)
	return isArchive
}

// isEmptyStatus reports whether a value is an object without members in a status. Such an object says no more than
// none. A program in Go writes status.problem as {}, for example, when the struct has been filled and emptied, and not
// at all when the struct has always been empty: omitempty does not leave structs out, and a merge patch has only what
// has changed.
func isEmptyStatus(path string, value any) bool {
	members, isObject := value.(map[string]any)
	return isObject && len(members) == 0 && (path == "status" || strings.HasPrefix(path, "status."))
}

// isAddressKey reports whether the cluster sets the IP addresses of fields of this name.
func isAddressKey(key string) bool {
	switch key {
	case "clusterIP", "clusterIPs", "podIP", "podIPs", "hostIP", "hostIPs", "ip":
		return true
	}
	return false
}

// isTimeOfRun reports whether text is a time at which the run may have happened.
func (f *flattener) isTimeOfRun(text string) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && (f.created.IsZero() || at.Sub(f.created).Abs() < 24*time.Hour)
}

// hashOfSecret returns a hash that stands for a value of a Secret. Equal values have equal hashes in one exploration,
// and other hashes in another one.
func (f *flattener) hashOfSecret(encoded string) string {
	content, err := base64.StdEncoding.DecodeString(encoded)
	content = decompressed(content)
	if err == nil && utf8.Valid(content) {
		content = []byte(f.words.replace(string(content)))
	}
	hash := hmac.New(sha256.New, f.words.secretKey)
	hash.Write(content)
	return jsonText("<secret with the hash " + hex.EncodeToString(hash.Sum(nil)[:4]) + ">")
}

// maxDecompressed is how many bytes of a compressed value are looked at.
const maxDecompressed = 8 << 20

// decompressed returns the content of a value that is compressed by gzip, so that the names in it can be
// replaced. It returns any other value unchanged.
func decompressed(value []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return value
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxDecompressed))
	if err != nil {
		return value
	}
	return content
}

// hasBelow reports whether there are fields below a path.
func (f fields) hasBelow(path string) bool {
	for other := range f {
		if rest, ok := strings.CutPrefix(other, path); ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[")) {
			return true
		}
	}
	return false
}

// text returns all fields, sorted, with the operator's fields first.
func (f fields) text() string {
	var b strings.Builder
	paths := slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		if f[a].isOwned != f[b].isOwned {
			if f[a].isOwned {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, path := range paths {
		fmt.Fprintf(&b, "%s=%s\n", path, f[path].value)
	}
	return b.String()
}
