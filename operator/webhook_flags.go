package operator

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation"
)

// webhookFlags are the flags about the webhooks of a program.
type webhookFlags struct {
	// address is where the program serves its webhooks behind a Service, or empty.
	address string
	// isOff is true if the program serves and publishes no webhooks: the address was given as an empty text.
	isOff bool
	// service is the name of the Service. It is empty for the name of the program.
	service string
	// cert and key are the files of the certificate. Both are set, or none.
	cert, key string
}

// isEmpty reports whether no flag is given.
func (f webhookFlags) isEmpty() bool { return f == webhookFlags{} }

// isIssuing reports whether a program with webhooks issues its own certificates in a cluster, and publishes its webhooks.
func (f webhookFlags) isIssuing() bool { return !f.isOff && f.cert == "" }

// setAddress sets where the program serves its webhooks. An empty text means nowhere.
func (f *webhookFlags) setAddress(text string) error {
	f.address, f.isOff = "", text == ""
	if f.isOff {
		return nil
	}
	return setAddress(&f.address)(text)
}

// setService sets the name of the Service.
func (f *webhookFlags) setService(name string) error {
	f.service = name
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return errors.New("it is no name of a Service: " + problems[0])
	}
	return nil
}

// check returns what is wrong with flags that are valid each by itself.
func (f webhookFlags) check(command string) error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return errors.New("--webhook-cert and --webhook-key belong together: give both, or none for certificates that the program issues itself")
	case f.cert != "" && f.isOff:
		return errors.New(`--webhooks "" serves no webhooks: leave out --webhook-cert and --webhook-key`)
	case f.cert != "" && f.address == "" && command == "run":
		return errors.New("--webhook-cert and --webhook-key are for --webhooks: give it an address, such as :9443")
	}
	return nil
}
