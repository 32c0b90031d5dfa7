// Command echo is the program of a container in tests of a real node. Without arguments it answers
// HTTP with the name of its host. With the argument get it prints what a URL answers.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// authority is where a Pod finds the certificate of the authority of its cluster.
const authority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "get" {
		return get(args[1])
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("echo listens on", name)
	return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, name)
	}))
}

func get(url string) error {
	roots := x509.NewCertPool()
	if text, err := os.ReadFile(authority); err == nil {
		roots.AppendCertsFromPEM(text)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
