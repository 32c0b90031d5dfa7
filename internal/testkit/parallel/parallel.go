// Package parallel runs the tests of packages whose tests mostly wait, such as for a control plane, a lease or the rest
// of an exploration. More of them run at the same time than Go's default, which is one for each processor.
package parallel

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// testsPerProcessor is how many tests run at the same time for each processor. Six explorations keep one processor busy.
const testsPerProcessor = 3

// RunTests runs the tests of a package, and returns the exit status. It is for TestMain. The flag -parallel of the
// command line comes first.
func RunTests(m *testing.M) (status int) {
	// m.Run parses the command line, which sets the flag again.
	if err := flag.Set("test.parallel", strconv.Itoa(testsPerProcessor*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
