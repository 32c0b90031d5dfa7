package wire

import (
	"errors"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// listPage is the JSON of a page of a list.
type listPage struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []jsontext.Value `json:"items"`
}

// Page is one page of a list, with items that are not decoded.
type Page struct {
	// ResourceVersion is the resource version of the whole list.
	ResourceVersion string
	Items           []jsontext.Value
	// Undecodable holds a [*DecodeError] for each object that does not decode, and so is not
	// among Items.
	Undecodable []error
}

const (
	// maxPageItems is how many objects a list asks for at a time, unless they are large.
	maxPageItems = 500
	// minPageItems is how many objects a list asks for at a time however large they are.
	minPageItems = 10
	// pageBytes is the size that a page should not exceed.
	pageBytes = 8 << 20
)

// cachedPageSize is how many objects of a list that is not read from the server make a page.
const cachedPageSize = 100

// pagesOf returns items in pages.
func pagesOf(items iter.Seq2[jsontext.Value, error]) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		page := new(Page)
		for item, err := range items {
			switch _, isUndecodable := errors.AsType[*DecodeError](err); {
			case isUndecodable:
				page.Undecodable = append(page.Undecodable, err)
			case err != nil:
				yield(nil, err)
				return
			default:
				page.Items = append(page.Items, item)
			}
			if len(page.Items)+len(page.Undecodable) < cachedPageSize {
				continue
			}
			if !yield(page, nil) {
				return
			}
			page = new(Page)
		}
		yield(page, nil)
	}
}

// nextLimit returns how many objects the next page should have, if the last page had that many items
// in size bytes.
func nextLimit(items, size int) int {
	if items == 0 || size <= pageBytes*items/maxPageItems {
		return maxPageItems
	}
	return max(minPageItems, pageBytes*items/size)
}
