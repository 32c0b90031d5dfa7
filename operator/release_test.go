package operator_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/testkit/parallel"
	"github.com/yare-go/yare/operator"
)

// runRelease runs a release of a program of this test binary. The first arguments are the API group, the release, the name of
// the Pod, and the namespace of the Pod. The last two may be empty. programs holds the programs by their groups.
func runRelease(programs map[string]func(release string) operator.Program) {
	group, release := os.Args[1], os.Args[2]
	os.Setenv("POD_NAME", os.Args[3])
	os.Setenv("POD_NAMESPACE", os.Args[4])
	os.Args = append(os.Args[:1], os.Args[5:]...)
	programs[group](release).Main()
}

// ServesWebhooks reports whether a release of a program of this test binary has validators, defaulters or converters.
func ServesWebhooks(release string) bool {
	return release != "none" && release != "A" && release != "E"
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if name, ok := strings.CutPrefix(os.Args[1], "as:"); ok {
			os.Args = append(os.Args[:1], os.Args[2:]...)
			switch name {
			case "leader":
				operator.RunLeader()
			case "lanterns":
				runLanterns()
			case "pumps":
				runRelease(pumpPrograms)
			case "bulbs":
				runRelease(bulbPrograms)
			case "caller":
				if err := runCaller(); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				os.Exit(0)
			}
			operator.Main(operator.Watcher[operator.Gadget](operator.Programs[name]))
		}
	}
	os.Exit(parallel.RunTests(m))
}
