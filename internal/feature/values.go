package feature

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// SetText returns the Set of a flag whose value is any text.
func SetText(value *string) func(string) error {
	return func(text string) error { *value = text; return nil }
}

// SetBool returns the Set of a flag without a value.
func SetBool(value *bool) func(string) error {
	return func(text string) (err error) {
		if *value, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		return nil
	}
}

// SetLabel returns the Set of a flag whose value is a label of DNS. what stands for the value in the error.
func SetLabel(value *string, what string) func(string) error {
	return func(name string) error { *value = name; return CheckLabel(what, name) }
}

// CheckLabel returns an error unless name is a label of DNS. what stands for the name in the error.
func CheckLabel(what, name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s is not valid: %s", what, problems[0])
	}
	return nil
}

// SetAddress returns the Set of a flag whose value is an address to listen on.
func SetAddress(value *string) func(string) error {
	return func(address string) error {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("the address is not valid: write it as :8080 or 127.0.0.1:8080 (%w)", err)
		}
		*value = address
		return nil
	}
}

// Listen opens an address, such as :8080, that flags give. Requests may arrive from then on.
func Listen(ctx context.Context, flags, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, ListenError(flags, err)
	}
	return listener, nil
}

// ListenError returns the error of an address that flags give. It explains a taken port, which users meet most.
func ListenError(flags string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf(
			"listen on the address that %s gives: another program has the port: end that program, or give another port: %w",
			flags, err)
	}
	return fmt.Errorf("listen on the address that %s gives: %w", flags, err)
}

// AddAnnotation returns a function that adds an annotation to a map, which it makes if necessary. The error of the
// function has the example.
func AddAnnotation(annotations *map[string]string, example string) func(string) error {
	return func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if !ok || len(validation.IsQualifiedName(key)) > 0 {
			return errors.New("the annotation is not valid: write it as " + example)
		}
		if *annotations == nil {
			*annotations = make(map[string]string)
		}
		(*annotations)[key] = value
		return nil
	}
}

// PodPort returns the port of an address to listen on in a Pod. It returns 0 if the address is empty. Its error names
// the flags that give the address.
func PodPort(flags, address string) (int, error) {
	if address == "" {
		return 0, nil
	}
	host, text, err := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	ip := net.ParseIP(host)
	if err != nil || port < 1 || port > 65535 || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return 0, fmt.Errorf(
			"nothing outside of its Pod reaches a program that listens on %q: give %s the number of a port, such as :8080",
			address, flags)
	}
	return port, nil
}

// SetPath returns the Set of a flag whose value is a path.
func SetPath(value *string) func(string) error {
	return func(path string) error {
		*value = path
		if path == "" {
			return errors.New("it is empty")
		}
		return nil
	}
}

// SetSubdomain returns the Set of a flag whose value is the name of an object.
func SetSubdomain(value *string) func(string) error {
	return func(name string) error {
		*value = name
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return errors.New(problems[0])
		}
		return nil
	}
}

// SetTimeout returns the Set of a flag whose value is a duration above zero.
func SetTimeout(value *time.Duration) func(string) error {
	return func(text string) (err error) {
		if *value, err = time.ParseDuration(text); err == nil && *value <= 0 {
			err = errors.New("it must be above zero")
		}
		return err
	}
}

// TextList is the value of a flag that may be repeated.
type TextList []string

func (l *TextList) String() string { return strings.Join(*l, ",") }

func (l *TextList) Set(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	*l = append(*l, text)
	return nil
}
