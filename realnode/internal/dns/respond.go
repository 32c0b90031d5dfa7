package dns

import (
	"net"
	"time"

	"github.com/miekg/dns"
)

const (
	// ttl is short: Services come and go while an operator is written.
	ttl = 5
	// streamTimeout is how long a TCP client may be silent.
	streamTimeout = 30 * time.Second
)

// ServeDNS answers a question. An answer over UDP has at most 512 bytes. A client asks again over TCP for larger ones.
func (z *zone) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	response := z.respond(query)
	if _, isUDP := w.RemoteAddr().(*net.UDPAddr); isUDP {
		response.Truncate(dns.MinMsgSize)
	}
	_ = w.WriteMsg(response) // a client that got no answer asks again
}

// respond returns the response to a query. The response has no records if the name has none of the requested type.
func (z *zone) respond(query *dns.Msg) *dns.Msg {
	response := new(dns.Msg).SetReply(query)
	response.Authoritative, response.RecursionAvailable = true, true
	question := query.Question[0]
	header := dns.RR_Header{Name: question.Name, Class: dns.ClassINET, Ttl: ttl}
	switch found := z.lookup(question.Name); {
	case !found.exists:
		response.Rcode = dns.RcodeNameError
	case found.alias != "":
		header.Rrtype = dns.TypeCNAME
		response.Answer = append(response.Answer, &dns.CNAME{Hdr: header, Target: found.alias})
	case question.Qclass == dns.ClassINET && (question.Qtype == dns.TypeA || question.Qtype == dns.TypeANY):
		header.Rrtype = dns.TypeA
		for _, address := range found.addresses {
			if address.Is4() {
				response.Answer = append(response.Answer, &dns.A{Hdr: header, A: address.AsSlice()})
			}
		}
	}
	return response
}
