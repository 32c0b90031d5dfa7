// Package kubectl is the stock kubectl command, of the same release as the server.
package kubectl

import (
	"os"

	// The stock command brings the same authentication plugins.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Main runs the command `kubectl`. It reads its arguments from os.Args, as the stock
// command does in several places, and ends the process with the status that the stock
// command would end it with.
func Main() {
	// The verbosity is needed while the command is built, before flags are parsed.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	os.Exit(0)
}
