package faults

import (
	"io"
	"net/http"

	"github.com/yare-go/yare/internal/proxy"
)

// The kinds of the family [singleRequest] in which the server carries out a request, and the program does not receive the answer.
const (
	// Committed500 and Committed504 answer with this status in place of the server's answer.
	Committed500 Kind = "committed-500"
	Committed504 Kind = "committed-504"
	// CommittedReset breaks the connection in place of the server's answer.
	CommittedReset Kind = "committed-reset"
)

// losingAnswer returns the maker of hooks that answer with a code in place of the server, after the server has carried out the
// request. With the code 0 the connection breaks.
func losingAnswer(code int) hookMaker {
	return func(a *Armed, _ stepContext) proxy.HookFunc {
		return func(_ *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
			response, err := next(r)
			if err != nil {
				return nil, err
			}
			defer response.Body.Close()
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				return nil, err
			}
			a.recordTriggered()
			if code == 0 {
				return nil, proxy.ErrBroken
			}
			return refusal(code), nil
		}
	}
}
