package convert

import (
	"errors"
	"strings"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// The ConversionReview is that of k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1, with only the fields that a
// handler uses.

const reviewVersion = "apiextensions.k8s.io/v1"

// errOtherReview is the error of a ConversionReview of another version than v1.
var errOtherReview = errors.New("the ConversionReview is not of version " + reviewVersion)

// review is the request of a ConversionReview.
type review struct {
	uid string
	// group and version are those that the API server wants.
	group, version string
	// objects are JSON.
	objects [][]byte
}

// parseReview returns the request of a ConversionReview. The objects are parts of body.
func parseReview(body []byte) (*review, error) {
	var version, kind string
	var request []byte
	if !jsonscan.ValidMembers(body, func(name, value []byte) {
		switch string(name) {
		case "apiVersion":
			version, _ = jsontree.Parse(value).(string)
		case "kind":
			kind, _ = jsontree.Parse(value).(string)
		case "request":
			request = value
		}
	}) {
		return nil, jsonscan.ErrNotJSON
	}
	if version != reviewVersion || kind != "ConversionReview" {
		return nil, errOtherReview
	}
	r := &review{}
	s := jsonscan.New(request)
	hasObjects := false
	_ = s.Members(func(name []byte) error { // the value is well formed
		switch string(name) {
		case "uid", "desiredAPIVersion":
			isUID := string(name) == "uid"
			text, err := s.TextOrNull()
			if isUID {
				r.uid = string(text)
			} else if group, version, hasGroup := strings.Cut(string(text), "/"); hasGroup {
				r.group, r.version = group, version
			}
			return err
		case "objects":
			hasObjects = true
			more, err := s.Enter('[')
			for more && err == nil {
				if more, err = s.NextElement(']'); more && err == nil {
					var object []byte
					object, err = s.Raw()
					r.objects = append(r.objects, object)
				}
			}
			return err
		}
		return s.Skip()
	})
	if r.uid == "" || r.version == "" || !hasObjects {
		return nil, errors.New("the ConversionReview has no request with a uid, a desiredAPIVersion and objects")
	}
	return r, nil
}

// encode returns the ConversionReview with the converted objects.
func (r *review) encode(objects [][]byte) []byte {
	size := 256
	for _, each := range objects {
		size += len(each) + 1
	}
	text := append(make([]byte, 0, size),
		`{"apiVersion":"`+reviewVersion+`","kind":"ConversionReview","response":{"uid":`...)
	text = append(jsontree.AppendText(text, r.uid), `,"convertedObjects":[`...)
	for i, each := range objects {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, each...)
	}
	return append(text, `],"result":{"status":"Success"}}}`...)
}
