// Package apiserver is the stock kube-apiserver command.
package apiserver

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// Main runs the command `kube-apiserver` and returns the exit status.
func Main(args []string) int {
	command := app.NewAPIServerCommand()
	command.SetArgs(args)
	return cli.Run(command)
}
