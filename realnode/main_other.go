//go:build !linux

// Command realnode runs one real Kubernetes node on this machine. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "realnode: a real node needs Linux: leave --real-node out for a simulated node")
	os.Exit(1)
}
