package faults

import (
	"net/http"

	"github.com/yare-go/yare/internal/proxy"
)

// Reset is a kind of the family [singleRequest]. It breaks the connection before the server receives the request.
const Reset Kind = "reset"

// newReset returns the hook of a [Reset].
func newReset(a *Armed, _ stepContext) proxy.HookFunc {
	return func(*proxy.Exchange, *http.Request, proxy.Next) (*http.Response, error) {
		a.recordTriggered()
		return nil, proxy.ErrBroken
	}
}
