package logctx

import (
	"regexp"
	"strings"
	"testing"
)

func recovered(f func()) (site, stack string) {
	defer func() {
		recover()
		site, stack = PanicSite(), PanicStack()
	}()
	f()
	return "", ""
}

func TestPanic(t *testing.T) {
	t.Parallel()
	var nothing *struct{ n int }
	for name, f := range map[string]func(){
		"panic":         func() { panic("at the disco") },
		"runtime error": func() { nothing.n++ },
		"in a library":  func() { _ = regexp.MustCompile("(") }, //nolint:staticcheck // the panic is what is tested
	} {
		site, stack := recovered(f)
		file := "panic_test.go:"
		if name == "in a library" {
			file = "regexp.go:"
		}
		if !strings.Contains(site, file) {
			t.Errorf("%s: the site is %s", name, site)
		}
		first := strings.Split(stack, "\n")
		if len(first) < 3 || !strings.HasPrefix(first[0], "goroutine ") || !strings.Contains(first[2], file) {
			t.Errorf("%s: the stack begins with\n%s", name, strings.Join(first[:min(len(first), 5)], "\n"))
		}
	}
}
