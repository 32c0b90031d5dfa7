package operator

import "os"

// runRelease runs a release of a program of this test binary. The first arguments are the API group, the release, the name of
// the Pod, and the namespace of the Pod. The last two may be empty. programs holds the programs by their groups.
func runRelease(programs map[string]func(release string) Program) {
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
