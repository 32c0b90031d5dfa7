package fakeplane

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// NodeArg is the argument for kube-apiserver that the fake of the real node asks for.
const NodeArg = "--kubelet-preferred-address-types=InternalIP"

// node acts as the program of the real node. It fails to load a file called fail, and fails at its end after
// it loaded a file called fail-at-the-end.
func node(args []string) int {
	say := func(event map[string]any) {
		line, _ := json.Marshal(event)
		fmt.Printf("%s\n", line)
	}
	if args[0] == "load" {
		fmt.Printf("%q\n", args[1:])
		return 0
	}
	if strings.HasSuffix(args[len(args)-1], "fail") {
		say(map[string]any{"event": "failed", "error": "loading fail: this is no image"})
		return 1
	}
	say(map[string]any{"event": "prepared", "apiServerArgs": []string{NodeArg}, "socket": "/fake/containerd.sock"})
	say(map[string]any{"event": "starting", "component": "containerd"})
	if len(args) > 1 {
		say(map[string]any{"event": "loaded", "images": args[2:]})
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var request struct{ Do, Kubeconfig string }
		if json.Unmarshal(input.Bytes(), &request) != nil {
			return 1
		}
		if _, err := os.Stat(request.Kubeconfig); err != nil {
			say(map[string]any{"event": "failed", "error": err.Error()})
			return 1
		}
		say(map[string]any{"event": "exited", "component": "kubelet", "error": "on purpose"})
		say(map[string]any{"event": "ready", "socket": "/fake/containerd.sock"})
	}
	if strings.HasSuffix(args[len(args)-1], "fail-at-the-end") {
		fmt.Fprintln(os.Stderr, "realnode: remove the link yare0: no permission")
		return 1
	}
	return 0
}
