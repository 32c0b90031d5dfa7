//go:build !machines

package main

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func addMachines(*runtime.Scheme) error {
	return errors.New("the program has no Machines: build it with the tag machines")
}

func newMachine() client.Object { return nil }
