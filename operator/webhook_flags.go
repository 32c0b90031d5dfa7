package operator

import (
	"errors"

	"github.com/yare-go/yare/internal/feature"
)

// webhookFlags are the flags about webhooks.
type webhookFlags struct {
	// address is where the program serves its webhooks. It is empty for nowhere. isGiven is true if the command line
	// has it.
	address string
	isGiven bool
	// service is the name of the Service. It is empty for the name of the program.
	service string
	// cert and key are the files of a certificate that somebody else keeps. Both are given, or none.
	cert, key string
}

// setAddress sets the address to listen on. An empty text means that the webhooks are not served.
func (f *webhookFlags) setAddress(text string) error {
	f.isGiven = true
	if text == "" {
		f.address = ""
		return nil
	}
	return feature.SetAddress(&f.address)(text)
}

// isOff reports whether the user wants that the program neither serves nor publishes webhooks, by --webhooks "".
func (f *webhookFlags) isOff() bool { return f.isGiven && f.address == "" }

// check returns what is wrong with flags that are valid each by itself.
func (f *webhookFlags) check() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return errors.New("--webhook-cert and --webhook-key belong together: give both, or none for certificates that the program makes itself")
	case f.cert != "" && f.address == "":
		return errors.New("--webhook-cert and --webhook-key are for --webhooks: give it an address, such as :9443")
	}
	return nil
}
