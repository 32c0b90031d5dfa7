package layout

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are chosen below the ports that operating systems give to outgoing connections. So a component finds
// its port free when it is started once more.
const firstPort, lastPort = 20000, 32000

// freePort returns a port on the loopback address that nobody listens on at the moment.
func freePort() (int, error) {
	const tries = 100
	var last error
	for range tries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 in %d tries: %w", tries, last)
}
