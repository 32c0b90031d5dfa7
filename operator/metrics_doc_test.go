package operator

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/cache"
)

// docs/metrics.md lists all metrics with their types.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	f := newFigures()
	f.collectStreams(func() []cache.Stats { return nil })
	var text strings.Builder
	if _, err := f.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	list := func(expression, in string) []string {
		var all []string
		for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(in, -1) {
			all = append(all, match[1]+" "+match[2])
		}
		slices.Sort(all)
		return all
	}
	there := list(`(?m)^# TYPE (\S+) (\S+)$`, text.String())
	documented := list("(?m)^\\| `(\\w+)` \\| (counter|gauge|histogram) \\|", string(document))
	if len(there) == 0 || !slices.Equal(there, documented) {
		t.Errorf("the program has\n%s\ndocumented are\n%s", strings.Join(there, "\n"), strings.Join(documented, "\n"))
	}
}
