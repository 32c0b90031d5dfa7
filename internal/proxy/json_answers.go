package proxy

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/yare-go/yare/kube/wire"
)

// JSONAnswers is a [Hook] that asks the server for JSON in place of protobuf and tables, so that the hooks before it
// can read all answers about objects.
type JSONAnswers struct{}

// RoundTrip implements [Hook].
func (JSONAnswers) RoundTrip(x *Exchange, r *http.Request, next Next) (*http.Response, error) {
	r.Header.Del("Accept-Encoding")
	if x.IsAboutObjects() {
		r.Header.Set("Accept", acceptJSON(r.Header.Get("Accept")))
	}
	return next(r)
}

// acceptJSON returns the media types in a header Accept that are JSON and not a table. It returns JSON if
// there are no such types. Example: "application/vnd.kubernetes.protobuf,application/json" becomes "application/json".
func acceptJSON(accept string) string {
	var types []string
	fallback := wire.ContentJSON
	for each := range strings.SplitSeq(accept, ",") {
		each = strings.TrimSpace(each)
		media, parameters, err := mime.ParseMediaType(each)
		if err != nil || parameters["as"] == "Table" {
			continue
		}
		if media == wire.ContentJSON || media == "*/*" || media == "application/*" {
			types = append(types, each)
		} else if as := parameters["as"]; strings.HasPrefix(as, "PartialObjectMetadata") {
			fallback = fmt.Sprintf("%s;as=%s;g=meta.k8s.io;v=v1", wire.ContentJSON, as)
		}
	}
	if types == nil {
		return fallback
	}
	return strings.Join(types, ",")
}
