package calls

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/yare-go/yare/internal/feature"
)

// flags are the flags of the feature.
type flags struct {
	// address is where the program serves its webhooks. It is empty for nowhere. isGiven is true if the command line
	// has it.
	address string
	isGiven bool
	// service is the name of the Service. It is empty for the name of the program.
	service string
	// cert and key are the files of a certificate that somebody else keeps. Both are given, or none.
	cert, key string
	// hasEntries prints the webhook configurations with their entries.
	hasEntries bool
	// secret is the Secret with the certificate for an installation, or empty.
	secret string
	// port is where the Pods of an installation serve their webhooks, or 0 for the port of address.
	port int
	// annotations are those of the webhook configurations.
	annotations map[string]string
}

// all returns the flags for the command line.
func (f *flags) all() []feature.Flag {
	const example = "cert-manager.io/inject-ca-from=NAMESPACE/CERTIFICATE"
	return []feature.Flag{
		{Name: "webhooks", Set: f.setAddress,
			Help: "serve the webhooks of the program there, such as :9443. Default: nowhere. " +
				"The empty text is for a program that neither serves nor publishes them"},
		{Name: "webhook-service", Set: feature.SetLabel(&f.service, "the name of the Service"),
			Help: "the Service by which API servers call the webhooks. Default: that with the name of the program"},
		{Name: "webhook-cert", Set: feature.SetText(&f.cert),
			Help: "the certificate for --webhooks, which is read again when it changes. Then the program publishes nothing. " +
				"Default: the program makes and publishes its certificates"},
		{Name: "webhook-key", Set: feature.SetText(&f.key), Help: "the key of --webhook-cert"},
		{Name: "webhook-entries", Set: feature.SetBool(&f.hasEntries),
			Help: "print the webhook configurations with their entries. Default: the program writes the entries"},
		{Name: "webhook-annotation", Set: feature.AddAnnotation(&f.annotations, example),
			Help: "an annotation of the webhook configurations, such as " + example + "; may be repeated"},
		{Name: "webhook-secret", Set: feature.SetLabel(&f.secret, "the name of the Secret"),
			Help: "the Secret with the certificate for --webhooks: tls.crt and tls.key. The program then issues no certificate " +
				"and publishes nothing, and the configurations are printed with their entries"},
		{Name: "webhook-port", Set: f.setPort,
			Help: "where the Pods serve the webhooks, such as 10250 for API servers that reach no other port. Default: 9443"},
	}
}

// setPort sets the port of an installation.
func (f *flags) setPort(text string) error {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return errors.New("it is no port: write it as 9443")
	}
	f.port = int(port)
	return nil
}

// setAddress sets the address to listen on. An empty text means that the webhooks are not served.
func (f *flags) setAddress(text string) error {
	f.isGiven = true
	if text == "" {
		f.address = ""
		return nil
	}
	return feature.SetAddress(&f.address)(text)
}

// isOff reports whether the user wants that the program neither serves nor publishes webhooks, by --webhooks "".
func (f *flags) isOff() bool { return f.isGiven && f.address == "" }

// isIssuing reports whether the program issues its own certificates and publishes its webhooks.
func (f *flags) isIssuing() bool { return f.cert == "" && f.secret == "" }

// serviceOf returns the name of the Service of a program.
func (f *flags) serviceOf(p *feature.Program) string { return cmp.Or(f.service, p.Name) }

// check returns what is wrong with flags that are valid each by itself.
func (f *flags) check() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return errors.New("--webhook-cert and --webhook-key belong together: give both, or none for certificates that the program makes itself")
	case f.cert != "" && f.address == "":
		return errors.New("--webhook-cert and --webhook-key are for --webhooks: give it an address, such as :9443")
	}
	return nil
}
