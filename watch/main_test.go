package watch_test

import (
	"os"
	"testing"
)

// TestMain has connections asked sooner whether they are alive than the 30 and 15 seconds
// after which client-go asks by itself: what is tested is that a silent server is noticed.
func TestMain(m *testing.M) {
	for variable, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5", "HTTP2_PING_TIMEOUT_SECONDS": "10"} {
		if err := os.Setenv(variable, seconds); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
