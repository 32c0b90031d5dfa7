//go:build linux

package main

import (
	"context"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics of requests to the API server
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric of the version
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// runKubelet runs the stock kubelet and returns its exit status.
func runKubelet(args []string) int {
	command := kubelet.NewKubeletCommand(context.Background())
	command.SetArgs(args)
	return cli.Run(command)
}

// runProxy runs the stock kube-proxy and returns its exit status.
func runProxy(args []string) int {
	command := proxy.NewProxyCommand()
	command.SetArgs(args)
	return cli.Run(command)
}
