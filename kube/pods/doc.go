// Package pods runs commands in the containers of Pods, and opens connections to their ports.
//
//	var out bytes.Buffer
//	err := pods.Exec(ctx, client, "default", "web-0", pods.Command{Args: []string{"cat", "/etc/hostname"}, Stdout: &out})
//
//	conn, err := pods.Dial(ctx, client, "default", "web-0", 8080)
//
// It speaks WebSocket: the subprotocol v5.channel.k8s.io for commands (KEP-4006, API servers since
// 1.30), and v4.channel.k8s.io for ports, which the API server passes on to the kubelet. Only programs
// that import this package link a WebSocket library.
//
// The requests pass the handlers of the client. They need the permissions get and create on
// pods/exec, pods/attach or pods/portforward. Logs need no WebSocket: see [kube.API.Logs].
package pods
