package follow_test

import (
	"os"
	"testing"

	"github.com/yare-go/yare/internal/testkit/parallel"
)

// TestMain has connections pinged sooner than after the 30 and 15 seconds of client-go, because
// tests wait until a silent server is noticed.
func TestMain(m *testing.M) {
	for variable, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5", "HTTP2_PING_TIMEOUT_SECONDS": "10"} {
		if err := os.Setenv(variable, seconds); err != nil {
			panic(err)
		}
	}
	os.Exit(parallel.RunTests(m))
}
