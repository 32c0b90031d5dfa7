//go:build machines

package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func addMachines(scheme *runtime.Scheme) error { return clusterv1.AddToScheme(scheme) }

func newMachine() client.Object { return new(clusterv1.Machine) }
