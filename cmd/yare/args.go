package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// oneFolder checks that there is one folder. Its errors name the purpose of the argument, unlike the
// errors of cobra's own check.
func oneFolder(cmd *cobra.Command, args []string) error {
	folders := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		folders = dash // the following arguments are the operator's
	}
	switch folders {
	case 1:
		return nil
	case 0:
		return errors.New("name the folder of the operator's main package: yare dev DIR (`yare dev .` for this one)")
	default:
		return errors.New("name one folder only: yare dev DIR; arguments of the operator go behind --")
	}
}
