package certificates

import (
	"crypto/x509"
	"fmt"
	"net"
)

// Names are the names that certificates are for: the DNS name of a Service or, as the zero value, the address
// 127.0.0.1.
type Names struct{ dns string }

// ServiceNames returns the names of a Service, as API servers call it.
func ServiceNames(service, namespace string) Names { return Names{service + "." + namespace + ".svc"} }

// LoopbackNames returns the names of a process that API servers call by a URL with the address 127.0.0.1.
func LoopbackNames() Names { return Names{} }

// String returns the name by which API servers verify a serving certificate.
func (n Names) String() string {
	if n.dns == "" {
		return loopback().String()
	}
	return n.dns
}

// addTo adds the names to the template of a serving certificate.
func (n Names) addTo(template *x509.Certificate) {
	if n.dns == "" {
		template.IPAddresses = []net.IP{loopback()}
		return
	}
	template.DNSNames = []string{n.dns}
}

// constrain adds the critical name constraints to the template of a CA (RFC 5280, section 4.2.1.10): the CA can
// only sign certificates for the names. A constraint that is empty concerns all e-mail addresses, URIs or DNS names.
// DNS names below that of a Service cannot be excluded.
func (n Names) constrain(template *x509.Certificate) {
	template.PermittedDNSDomainsCritical = true
	template.ExcludedEmailAddresses, template.ExcludedURIDomains = []string{""}, []string{""}
	if n.dns == "" {
		template.PermittedIPRanges, template.ExcludedIPRanges = addressRanges("127.0.0.1/32"), addressRanges("::/0")
		template.ExcludedDNSDomains = []string{""}
		return
	}
	template.PermittedDNSDomains, template.ExcludedIPRanges = []string{n.dns}, addressRanges("0.0.0.0/0", "::/0")
}

// addressRanges returns the ranges of IP addresses in texts.
func addressRanges(texts ...string) (all []*net.IPNet) {
	for _, text := range texts {
		_, parsed, _ := net.ParseCIDR(text) // the texts are constant
		all = append(all, parsed)
	}
	return all
}

// isAuthority reports whether c is a CA for n alone that has signed itself.
func (n Names) isAuthority(c *x509.Certificate) bool {
	wanted := new(x509.Certificate)
	n.constrain(wanted)
	return c.IsCA && c.PermittedDNSDomainsCritical && constraintsText(c) == constraintsText(wanted) &&
		c.CheckSignatureFrom(c) == nil
}

// constraintsText returns the name constraints of c as a text.
func constraintsText(c *x509.Certificate) string {
	return fmt.Sprint(c.PermittedDNSDomains, c.PermittedIPRanges, c.ExcludedDNSDomains, c.ExcludedIPRanges)
}

// loopback returns the address 127.0.0.1.
func loopback() net.IP { return net.IPv4(127, 0, 0, 1).To4() }
