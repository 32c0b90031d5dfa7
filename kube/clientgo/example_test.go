package clientgo_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
)

// A program that also needs a client of client-go loads its configuration once. Load understands what package kube does
// not, such as an auth-provider.
func Example() {
	connect := func() (*kube.Client, *rest.RESTClient, error) {
		config, _, err := clientgo.Load(kube.ConfigSource{})
		if err != nil {
			return nil, nil, err
		}
		client, err := kube.NewClient(config)
		if err != nil {
			return nil, nil, err
		}
		untyped, err := rest.UnversionedRESTClientFor(clientgo.ToREST(config))
		return client, untyped, err
	}
	_ = connect
	// The other way round, for a program whose rest.Config comes from elsewhere.
	config, err := clientgo.ConfigFrom(&rest.Config{Host: "https://cluster.example.com"})
	fmt.Println(config.Host, err)
	// Output: https://cluster.example.com <nil>
}
