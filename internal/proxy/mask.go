package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"regexp"
	"strings"
)

// mask replaces what differs between runs that do the same.
type mask struct {
	// namespace is the namespace of the run.
	namespace string
	normalize func(string) string
}

// newMask returns the mask of a run in a namespace, which may be empty.
func newMask(namespace string, normalize func(string) string) *mask {
	if normalize == nil {
		normalize = func(name string) string { return name }
	}
	return &mask{namespace: namespace, normalize: normalize}
}

// hash returns a hash of the masked change of a resource.
func (m mask) hash(change any, resource string) string {
	isSecret := resource == "secrets"                     // its values are often random
	text, err := json.Marshal(m.masked(change, isSecret)) // sorts the names of members
	if err != nil {
		panic(err) // the value was decoded from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// masked returns a value with asterisks in place of what differs between runs. isSecret is true for a part of a Secret,
// whose data keeps only the names of its members.
func (m mask) masked(value any, isSecret bool) any {
	switch v := value.(type) {
	case map[string]any:
		masked := make(map[string]any, len(v))
		pointer, _ := v["path"].(string) // the path of an operation of a JSON patch
		for name, each := range v {
			key := m.withoutIDs(name)
			switch {
			case isServerMade(name), name == "value" && isServerMade(path.Base(pointer)):
				masked[key] = "*"
			case isSecret && (name == "data" || name == "stringData"):
				masked[key] = withoutValues(each)
			default:
				masked[key] = m.masked(each, isSecret)
			}
		}
		return masked
	case []any:
		masked := make([]any, len(v))
		for i, each := range v {
			masked[i] = m.masked(each, isSecret)
		}
		return masked
	case string:
		if content, isArchive := ArchivedJSON(v); isArchive {
			return m.masked(content, isSecret)
		}
		return m.maskedText(v)
	}
	return value
}

// isServerMade reports whether the server chooses the values of fields of this name.
func isServerMade(field string) bool {
	switch field {
	case "uid", "resourceVersion", "generation", "observedGeneration", "creationTimestamp", "deletionTimestamp",
		"managedFields":
		return true
	}
	return false
}

// withoutValues returns an object with an asterisk in place of the value of each member.
func withoutValues(value any) any {
	members, ok := value.(map[string]any)
	if !ok {
		return value
	}
	names := make(map[string]any, len(members))
	for name := range members {
		names[name] = "*"
	}
	return names
}

var (
	uidPattern  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	namePattern = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
	// A program often keeps a digest of what it has written, which depends on uids and on the namespace.
	digestPattern = regexp.MustCompile(`^([0-9]{8,}|[0-9a-f]{16,})$`)
)

// maskedText returns a text with asterisks in place of times, uids, digests, random parts of names, and the namespace
// of the run.
func (m mask) maskedText(text string) string {
	if digestPattern.MatchString(text) {
		return "*"
	}
	if namePattern.MatchString(text) {
		text = m.normalize(text)
	}
	return m.withoutIDs(timePattern.ReplaceAllString(text, "*"))
}

// withoutIDs returns a text with asterisks in place of uids and of the namespace of the run.
func (m mask) withoutIDs(text string) string {
	text = uidPattern.ReplaceAllString(text, "*")
	if m.namespace != "" {
		text = strings.ReplaceAll(text, m.namespace, "*")
	}
	return text
}
