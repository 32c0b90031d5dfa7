package faults

import (
	"net/http"

	"github.com/yare-go/yare/internal/proxy"
)

// Reset is a kind of the family [singleRequest]. It breaks the connection before the server receives the request.
const Reset Kind = "reset"

// reset breaks the connection before the server receives the request.
func reset(a *Armed, _ stepContext) proxy.HookFunc {
	return func(*proxy.Exchange, *http.Request, proxy.Next) (*http.Response, error) {
		a.recordTriggered()
		return nil, proxy.ErrBroken
	}
}
