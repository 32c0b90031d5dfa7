package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// A pusher pushes images to a registry.
type pusher struct {
	transport http.RoundTripper
}

// newPusher returns a pusher for the options. It checks the name of the image.
func newPusher(o options) (*pusher, error) {
	if o.push != "" || o.tag != "" {
		if _, err := nameOf(o, ""); err != nil {
			return nil, err
		}
	}
	t := remote.DefaultTransport.(*http.Transport).Clone()
	if o.insecure {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	if o.ca != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		data, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of --ca: %w", err)
		}
		if !roots.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s holds no certificate in PEM: name another file with --ca", o.ca)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return &pusher{transport: t}, nil
}

// nameOf returns the name of the image: the name in --push or --tag or, without both, the name of
// the program.
func nameOf(o options, program string) (name.Tag, error) {
	text, option := o.push, "--push"
	switch {
	case text == "" && o.tag != "":
		text, option = o.tag, "--tag"
	case text == "":
		text = program
	}
	var how []name.Option
	if o.insecure {
		how = append(how, name.Insecure)
	}
	tag, err := name.NewTag(text, how...)
	if err != nil && text == program {
		return tag, fmt.Errorf("the program's name %q is not valid as that of an image: name the image with --tag NAME (%w)",
			program, err)
	}
	if err != nil {
		return tag, fmt.Errorf(
			"the name of the image that %s gives is not valid: write it as registry.example.com/name:tag (%w)", option, err)
	}
	return tag, nil
}

// familiarName returns the name of an image or a repository as container runtimes write it.
func familiarName(n interface{ Name() string }) string {
	if rest, ok := strings.CutPrefix(n.Name(), name.DefaultRegistry+"/"); ok {
		return "docker.io/" + rest
	}
	return n.Name()
}

// push pushes an index, and all that belongs to it, under a tag. It uses the credentials of docker
// login, podman login and their helpers.
func (p *pusher) push(ctx context.Context, tag name.Tag, index v1.ImageIndex) error {
	err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithTransport(p.transport),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("yare"))
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return fmt.Errorf("push %s: %w%s", familiarName(tag), err, pushAdvice(tag.RegistryStr(), err))
}

// pushAdvice returns advice about an error of a registry, or "".
func pushAdvice(host string, err error) string {
	refusal, isRefusal := errors.AsType[*transport.Error](err)
	switch {
	case isRefusal && (refusal.StatusCode == http.StatusUnauthorized || refusal.StatusCode == http.StatusForbidden):
		return ": log in with `docker login " + host + "`, as somebody who may push there"
	case strings.Contains(err.Error(), "x509: "):
		return ": name the file of the registry's CA with --ca"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return ": the registry has no TLS, which --insecure allows"
	}
	return ""
}
