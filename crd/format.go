package crd

import (
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// formats holds a check of defaults for each format of strings that a server checks.
// A server refuses a definition with a default that does not have its format. These
// checks accept nothing that a server refuses. Some are stricter, and nil stands for a format
// that only a server can check. The function hasFormat of package operator/conversion/internal/convert has other rules:
// it accepts the formats that it does not know.
var formats = map[string]func(string) bool{
	"byte":           func(v string) bool { return v != "" && isValid(base64.StdEncoding.DecodeString(v)) },
	"cidr":           func(v string) bool { return isValid(netip.ParsePrefix(v)) },
	"date":           func(v string) bool { return isValid(time.Parse(time.DateOnly, v)) },
	"date-time":      func(v string) bool { return isValid(time.Parse(time.RFC3339, v)) },
	"datetime":       func(v string) bool { return isValid(time.Parse(time.RFC3339, v)) },
	"duration":       func(v string) bool { return isValid(time.ParseDuration(v)) },
	"email":          matches(`^[a-zA-Z0-9._+-]+@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*\.[a-zA-Z]{2,}$`),
	"hostname":       func(v string) bool { return len(validation.IsDNS1123Subdomain(v)) == 0 },
	"ipv4":           func(v string) bool { a, err := netip.ParseAddr(v); return err == nil && a.Is4() },
	"ipv6":           func(v string) bool { a, err := netip.ParseAddr(v); return err == nil && a.Is6() && a.Zone() == "" },
	"k8s-long-name":  func(v string) bool { return len(validation.IsDNS1123Subdomain(v)) == 0 },
	"k8s-short-name": func(v string) bool { return len(validation.IsDNS1123Label(v)) == 0 },
	"mac":            func(v string) bool { return isValid(net.ParseMAC(v)) },
	"password":       func(string) bool { return true },
	"uri": func(v string) bool {
		u, err := url.ParseRequestURI(v)
		return err == nil && u.Scheme != "" && u.Host != ""
	},
	"uuid": matches(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`),

	"bsonobjectid": nil, "creditcard": nil, "hexcolor": nil, "isbn": nil, "isbn10": nil, "isbn13": nil,
	"rgbcolor": nil, "ssn": nil, "uuid3": nil, "uuid4": nil, "uuid5": nil,
}

// isValid reports whether parsing succeeded.
func isValid[T any](_ T, err error) bool { return err == nil }

// matches returns a check by a regular expression, which is compiled when it is needed: most
// programs that link this package never do.
func matches(pattern string) func(string) bool {
	return func(v string) bool { return regexp.MustCompile(pattern).MatchString(v) }
}
