// Package judges runs the tools of docs/guide/judges.md on what the examples of yare print. The commands and the
// configurations are the blocks of that page.
package judges

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/yaretest"
)

const root = "../.."

// binaries are the tools whose binary has another name than the heading of the page.
var binaries = map[string]string{"kube-api-linter": "golangci-lint-kube-api-linter"}

// section is a section of the page. The introduction has no title.
type section struct {
	title string
	// isOptional says that the page has "Not run there" about the tool: its absence is no failure.
	isOptional bool
	// files holds the configurations by their names.
	files map[string]string
	// commands are the blocks for a shell.
	commands []string
}

var block = regexp.MustCompile("(?ms)^```(sh|yaml|hcl)\n(.*?)^```$")

// readPage returns the sections of the page that have blocks. For example, the block "# polaris.yaml\nchecks: …" gives the file
// polaris.yaml.
func readPage(t *testing.T) (sections []section) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/guide/judges.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(string(page), "\n## ") {
		s := section{files: make(map[string]string), isOptional: strings.Contains(text, "*Not run there.*")}
		if i > 0 {
			s.title, _, _ = strings.Cut(text, "\n")
		}
		for _, found := range block.FindAllStringSubmatch(text, -1) {
			if found[1] == "sh" {
				s.commands = append(s.commands, found[2])
				continue
			}
			first, _, _ := strings.Cut(found[2], "\n")
			name, isNamed := strings.CutPrefix(first, "# ")
			if !isNamed {
				t.Fatalf("the first line of a block of %s names no file: %s", s.title, first)
			}
			s.files[name] = found[2]
		}
		if len(s.commands) == 0 {
			t.Fatalf("the section %q has no command", s.title)
		}
		sections = append(sections, s)
	}
	if len(sections) < 10 {
		t.Fatalf("the page has %d sections, fewer than 10", len(sections))
	}
	return sections
}

// Each tool of the page accepts what WebApp and CronJob print, with the configuration of the page.
func TestTools(t *testing.T) {
	t.Parallel()
	sections := readPage(t)
	if os.Getenv("TOOLS") == "" {
		t.Skip("the variable TOOLS does not name the folder of the tools: run .ci/run tools")
	}
	cluster := yaretest.New(t)
	for _, example := range []string{"webapp", "cronjob"} {
		o := newOperator(t, example)
		o.run(t, sections[0])
		o.writeOldDefinition(t)
		o.writeMetrics(t, cluster)
		for _, s := range sections[1:] {
			t.Run(example+"/"+s.title, func(t *testing.T) {
				binary := s.title
				if name, isThere := binaries[binary]; isThere {
					binary = name
				}
				if _, err := os.Stat(filepath.Join(os.Getenv("TOOLS"), binary)); err != nil && s.isOptional {
					t.Skipf("%s is not there", binary)
				}
				o.run(t, s)
			})
		}
	}
}

// operator is the module of an operator, outside of the module of yare.
type operator struct{ name, folder string }

// newOperator makes a module of the Go files of an example, and its binary. The folder also has the alerts and the dashboard of yare.
func newOperator(t *testing.T, example string) operator {
	t.Helper()
	o := operator{name: example, folder: t.TempDir()}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"examples/" + example + "/*.go", "go.mod", "go.sum", "docs/alerts.yaml", "docs/dashboard.json"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no file, %v", pattern, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			o.write(t, filepath.Base(name), string(text))
		}
	}
	o.shell(t, fmt.Sprintf("go mod edit -module=example.com/%s -require=github.com/yare-go/yare@v0.0.0 -replace=github.com/yare-go/yare=%s\n"+
		"go build -o bin/%[1]s .\n", example, absolute))
	return o
}

func (o operator) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(o.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run writes the files of a section, and executes its commands. The page names webapp: another operator has its own name there.
func (o operator) run(t *testing.T, s section) {
	t.Helper()
	for name, text := range s.files {
		o.write(t, name, text)
	}
	for _, command := range s.commands {
		o.shell(t, strings.ReplaceAll(command, "webapp", o.name))
	}
}

// shell executes commands in the folder of the operator. An exit status other than 0 fails the test.
func (o operator) shell(t *testing.T, commands string) {
	t.Helper()
	path := strings.Join([]string{filepath.Join(o.folder, "bin"), os.Getenv("TOOLS"), os.Getenv("PATH")}, string(os.PathListSeparator))
	shell := exec.CommandContext(t.Context(), "sh", "-euc", commands)
	shell.Dir = o.folder
	shell.Env = append(os.Environ(), "PATH="+path, "GOWORK=off", "NO_COLOR=1",
		"IMAGE=registry.example.com/"+o.name+"@sha256:"+strings.Repeat("0", 64))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%s%v\n%s", commands, err, out)
	}
}

// writeOldDefinition writes old.yaml: version v1 of new.yaml, without what a release adds. crdify accepts the additions only by its
// configuration.
func (o operator) writeOldDefinition(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.folder, "new.yaml"))
	var definition map[string]any
	if err == nil {
		err = yaml.Unmarshal(text, &definition)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := definition["spec"].(map[string]any)
	delete(spec, "conversion")
	versions, _ := spec["versions"].([]any)
	versions = slices.DeleteFunc(versions, func(v any) bool { return v.(map[string]any)["name"] != "v1" })
	simplify(versions)
	spec["versions"] = versions
	if text, err = yaml.Marshal(definition); err != nil {
		t.Fatal(err)
	}
	o.write(t, "old.yaml", string(text))
}

// simplify removes the last value of each enumeration, the rules in CEL and the first letter of each description from all schemas
// in value.
func simplify(value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			simplify(each)
		}
	case map[string]any:
		delete(value, "x-kubernetes-validations")
		if values, isEnum := value["enum"].([]any); isEnum && len(values) > 1 {
			value["enum"] = slices.Delete(values, len(values)-1, len(values))
		}
		if text, isText := value["description"].(string); isText && text != "" {
			value["description"] = text[1:]
		}
		for _, each := range value {
			simplify(each)
		}
	}
}

// writeMetrics writes metrics.txt: what the operator serves while it leads.
func (o operator) writeMetrics(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	definition, err := os.ReadFile(filepath.Join(o.folder, "new.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t, string(definition), "apply", "--server-side", "-f", "-")
	address := freeAddress(t)
	args := []string{"run", "--leader-elect", "--listen=" + address}
	if strings.Contains(string(definition), "strategy: Webhook") {
		args = append(args, "--webhooks="+freeAddress(t))
	}
	cluster.Run(t, filepath.Join(o.folder, "bin", o.name), args...)
	yaretest.Eventually(t, func() error {
		text, err := get(t.Context(), "http://"+address+"/metrics")
		if err != nil {
			return err
		}
		if !strings.Contains(text, "\nyare_leader 1\n") || !strings.Contains(text, "\nyare_stream_synced{") {
			return fmt.Errorf("%s does not lead: %s", o.name, text)
		}
		o.write(t, "metrics.txt", text)
		return nil
	})
}

// freeAddress returns an address of loopback at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
