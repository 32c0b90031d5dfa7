// Package admission answers the API server's calls to the webhooks of a program: a validator refuses objects, and a
// defaulter adds fields to them. The package has neither a listener nor certificates. A [Handler] is an [http.Handler].
//
// A call passes these steps. Each step can answer the call:
//
//	path       no webhook of this program has the path: HTTP 503 with Retry-After
//	length     the length of the body is missing or too large: HTTP 411 or 413
//	capacity   too many calls or bytes at once: HTTP 429 with Retry-After
//	review     the body is no AdmissionReview of version v1: HTTP 400 or 503
//	scope      the object is outside of the program's namespaces, or the defaulter has nothing to do: allowed
//	function   the function of the author returns, panics or is too slow: an AdmissionReview, or HTTP 503
//
// The API server repeats a call after HTTP 429 and 503 with Retry-After, within the timeout of the webhook. So these
// answers close the connection: another replica may be able to answer. No answer allows what the program does not know.
package admission
