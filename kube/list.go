package kube

import (
	"context"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// listItems lists the items of all objects of t that selectors select, not decoded. An item that cannot
// be read comes as a [*wire.DecodeError], and the sequence goes on. Any other error ends the sequence.
func listItems(ctx context.Context, c *Client, t target, selectors []Selector) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		matches, err := matchesOf(selectors, t)
		if err != nil {
			yield(nil, err)
			return
		}
		streams, err := t.streams(c, withoutMatches(selectors))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, stream := range streams {
			for page, err := range stream.Pages(ctx, c, matches...) {
				if err != nil {
					yield(nil, err)
					return
				}
				for _, item := range page.Items {
					if !yield(item, nil) {
						return
					}
				}
				for _, err := range page.Undecodable {
					if !yield(nil, err) {
						return
					}
				}
			}
		}
	}
}
