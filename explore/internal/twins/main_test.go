package twins

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// testsPerProcessor is how many explorations run at the same time for each processor, unless the flag -parallel says
// otherwise. An exploration mostly waits: six of them keep one processor busy.
const testsPerProcessor = 3

func TestMain(m *testing.M) {
	// A flag of the command line is set again by m.Run, which parses the command line.
	if err := flag.Set("test.parallel", strconv.Itoa(testsPerProcessor*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
