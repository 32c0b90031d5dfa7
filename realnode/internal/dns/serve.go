package dns

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// ttl is short: Services come and go while an operator is written.
	ttl = 5
	// maxPacket is the largest answer over UDP. A client asks again over TCP for larger ones.
	maxPacket = 512
	// streamTimeout is how long a TCP client may be silent.
	streamTimeout = 30 * time.Second
)

// lookup finds the answer for a name.
type lookup func(name string) answer

// serve answers questions until both ends are closed.
func serve(packets net.PacketConn, stream net.Listener, find lookup) {
	var running sync.WaitGroup
	running.Go(func() { servePackets(packets, find) })
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	for {
		conn, err := stream.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			continue
		}
		mu.Lock()
		open[conn] = true
		mu.Unlock()
		running.Go(func() {
			serveStream(conn, find)
			mu.Lock()
			defer mu.Unlock()
			delete(open, conn)
		})
	}
	mu.Lock()
	for conn := range open {
		_ = conn.Close()
	}
	mu.Unlock()
	running.Wait()
}

// servePackets answers questions over UDP.
func servePackets(packets net.PacketConn, find lookup) {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := packets.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if response := find.respond(buffer[:n], maxPacket); response != nil {
			_, _ = packets.WriteTo(response, from) // a client that got no answer asks again
		}
	}
}

// serveStream answers questions over TCP.
func serveStream(conn net.Conn, find lookup) {
	defer conn.Close()
	for {
		if conn.SetDeadline(time.Now().Add(streamTimeout)) != nil {
			return
		}
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		const maxMessage = 1<<16 - 1
		response := find.respond(query, maxMessage)
		if response == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(response))), response...)); err != nil {
			return
		}
	}
}

// respond returns the response to a query, of at most limit bytes. It returns nil if the query
// cannot be read.
func (find lookup) respond(query []byte, limit int) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil || header.Response {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	message := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, OpCode: header.OpCode,
			Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	switch found := find(question.Name.String()); {
	case header.OpCode != 0:
		message.RCode = dnsmessage.RCodeNotImplemented
	case !found.exists:
		message.RCode = dnsmessage.RCodeNameError
	default:
		message.Answers = records(question, found)
	}
	packed, err := message.Pack()
	if err == nil && len(packed) > limit {
		message.Truncated, message.Answers = true, nil
		packed, err = message.Pack()
	}
	if err != nil {
		return nil
	}
	return packed
}

// records returns the records for a question. There are no records if the name has none of the requested
// type.
func records(question dnsmessage.Question, found answer) []dnsmessage.Resource {
	header := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: ttl}
	if found.alias != "" {
		target, err := dnsmessage.NewName(found.alias)
		if err != nil {
			return nil
		}
		header.Type = dnsmessage.TypeCNAME
		return []dnsmessage.Resource{{Header: header, Body: &dnsmessage.CNAMEResource{CNAME: target}}}
	}
	if question.Class != dnsmessage.ClassINET || question.Type != dnsmessage.TypeA && question.Type != dnsmessage.TypeALL {
		return nil
	}
	header.Type = dnsmessage.TypeA
	var resources []dnsmessage.Resource
	for _, address := range found.addresses {
		if address.Is4() {
			resources = append(resources, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		}
	}
	return resources
}
