// Package serving serves webhooks over TLS, and ends without failing a call.
//
// An API server keeps its connections to a webhook open, and sends requests on them. When a replica ends, some of these
// requests are under way, and a load balancer goes on sending new ones for a while. A POST whose connection closes
// before the answer has failed: the client must not repeat the request. So the end of a [Server] comes in this order:
//
//  1. [Server.Drain]: each answer closes its connection. New connections are accepted.
//  2. After the time for draining, [Server.Close] closes the listener.
//  3. Each connection without a request is closed, but only if no request has arrived in the meantime: see [conn].
//  4. Close waits for the requests that are being answered.
//
// For example, a replica drains for 15 s. The balancer stops sending new connections after 2 s. A connection that was
// used at second 3 is closed by its answer. A connection whose last request came before the drain is closed at second
// 15. A request that arrives on that connection at this moment is answered first.
package serving
