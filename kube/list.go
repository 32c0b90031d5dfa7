package kube

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// listItems calls yield with each item of all objects of t that selectors select, not decoded, until yield returns
// false. It calls yield with a [*wire.DecodeError] for an item that cannot be read, and goes on. Any other error is the
// last call.
func listItems(ctx context.Context, c *Client, t target, selectors []Selector, yield func(jsontext.Value, error) bool) {
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

// listAll calls add with each item of all objects of t that selectors select, as [API.List] describes. add returns a
// [*wire.DecodeError] for an item that it cannot decode. listAll calls drop when the items of all calls of add so far
// do not count: when it begins again, and when it fails.
func listAll(
	ctx context.Context, c *Client, t target, selectors []Selector, drop func(), add func(jsontext.Value) error,
) error {
	// A list of several pages can become too old between two of them.
	for attempt := 1; ; attempt++ {
		var bad []error
		var failed error
		listItems(ctx, c, t, selectors, func(item jsontext.Value, err error) bool {
			if err == nil {
				err = add(item)
			}
			if _, ok := errors.AsType[*wire.DecodeError](err); ok {
				bad = append(bad, err)
			} else if err != nil {
				failed = err
			}
			return true
		})
		if failed == nil {
			return errors.Join(bad...)
		}
		drop()
		if !HasReason(failed, metav1.StatusReasonGone) || attempt == 3 {
			return failed
		}
	}
}
