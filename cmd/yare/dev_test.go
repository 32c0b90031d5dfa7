package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// anOperator is a program with no more than what `yare dev` needs of an operator.
const anOperator = `package main

import (
	"fmt"
	"os"
	"time"
)

const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: books.example.com}\nspec: {group: example.com}\n"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "crd" {
		fmt.Print(crd)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "permissions" {
		fmt.Fprintln(os.Stderr, "unknown command \"permissions\"")
		os.Exit(2)
	}
	if len(os.Args) > 1 && os.Args[1] == "manifests" {
		fmt.Fprintln(os.Stderr, "unknown command \"manifests\"")
		os.Exit(2)
	}
	fmt.Println("version one", os.Getenv("KUBECONFIG"))
	for {
		time.Sleep(time.Hour)
	}
}
`

const aSample = "apiVersion: example.com/v1\nkind: Book\nmetadata: {name: moby-dick}\n"

func operator(version string) string {
	return strings.Replace(anOperator, "version one", "version "+version, 1)
}

func TestDevRefuses(t *testing.T) {
	t.Parallel()
	const module = "module example.com/op\n\ngo 1.26\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		dir   string
		want  string
	}{
		{"no folder", nil, "nothing", "nothing does not exist"},
		{"a file", map[string]string{"op/main.go": "package main\n"}, "op/main.go", "is not a folder"},
		{"no module", map[string]string{"op/main.go": "package main\n\nfunc main() {}\n"}, "op", "go mod init"},
		{"no Go file", map[string]string{"op/go.mod": module}, "op", "holds no Go main package"},
		{"a library", map[string]string{"op/go.mod": module, "op/op.go": "package op\n"}, "op", "holds the Go package op"},
		{"a failing crd", map[string]string{"op/go.mod": module, "op/main.go": "package main\n\nfunc main() { panic(\"no such command\") }\n"}, "op", "`crd` failed"},
		{"crd prints nothing", map[string]string{"op/go.mod": module, "op/main.go": "package main\n\nfunc main() {}\n"}, "op", "prints no object"},
		{"crd prints something else", map[string]string{"op/go.mod": module, "op/main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"kind: Pod\") }\n"}, "op", `kind "Pod"`},
		{"crd prints no YAML", map[string]string{"op/go.mod": module, "op/main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello, world\") }\n"}, "op", "no CustomResourceDefinition"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			for name, content := range test.files {
				s.write(name, content)
			}
			status, _, all := s.run("dev", test.dir)
			if status != 1 || !strings.Contains(all, test.want) || !strings.Contains(all, test.dir) {
				t.Errorf("status %d; want 1, %q and %q in:\n%s", status, test.want, test.dir, all)
			}
			s.leftNothing()
		})
	}
}

func TestDevLoop(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("op/main.go", operator("one"))
	s.write("op/sample.yaml", aSample)
	c := s.start("dev", "op", "--kubeconfig", "access")
	c.says(1, "export KUBECONFIG="+filepath.Join(s.dir, "access"))
	c.says(1, "applied books.example.com")
	c.says(1, "op has no subcommand permissions, so it runs as administrator")
	c.says(1, "version one "+filepath.Join(s.dir, "access"))
	c.says(1, "applied book/moby-dick from sample.yaml")
	first := s.operatorPid(c, 1)

	s.write("op/main.go", operator("two")+"\nfunc broken( {\n")
	c.says(1, "does not compile; the operator built before goes on")
	c.says(1, "op/main.go:")
	if !alive(first) {
		t.Error("a compile error ended the operator")
	}
	s.write("op/main.go", operator("two"))
	c.says(1, "version two")
	if alive(first) {
		t.Error("two operators run")
	}
	if n := strings.Count(s.kubectlCalls(), "kind: CustomResourceDefinition"); n != 1 {
		t.Errorf("the same CRDs were applied %d times", n)
	}

	s.write("op/sample.yaml", strings.Replace(aSample, "moby-dick", "omoo", 1))
	c.says(1, "applied book/omoo from sample.yaml")
	s.write("op/sample.yaml", "not an object\n")
	c.says(1, "cannot be applied; the next save tries again")
	s.write("op/sample.yaml", aSample)
	c.says(2, "applied book/moby-dick from sample.yaml")

	s.write("op/more/more.go", "package more\n\nconst CRD = `# another\n`\n")
	s.write("op/main.go", strings.Replace(strings.Replace(operator("three"), "import (\n", "import (\n\t\"example.com/op/more\"\n", 1), "fmt.Print(crd)", "fmt.Print(more.CRD + crd)", 1))
	c.says(1, "version three")
	c.says(2, "applied books.example.com")
	s.write("op/more/more.go", "package more\n\nconst CRD = `# a third\n`\n")
	c.says(3, "applied books.example.com") // The new package is watched too.
	c.says(2, "version three")
	last := s.operatorPid(c, strings.Count(c.out.String(), "(process "))

	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
	if alive(last) {
		t.Error("the operator still runs")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "access")); err == nil {
		t.Error("the kubeconfig is left")
	}
	s.leftNothing()
	if t.Failed() {
		t.Log(c.out.String())
	}
}

// The operator has the account and the roles that it prints, and the user's terminal has all rights.
func TestDevRunsAsServiceAccount(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	const refusal = "\t\tfmt.Fprintln(os.Stderr, \"unknown command \\\"permissions\\\"\")\n\t\tos.Exit(2)\n"
	printing := func(version, roles string) string {
		source := strings.Replace(operator(version), refusal, "\t\tfmt.Print("+strconv.Quote(roles)+")\n\t\treturn\n", 1)
		return strings.Replace(source, `os.Getenv("KUBECONFIG"))`, `os.Getenv("KUBECONFIG"), os.Getenv("YARE_CHECK_PERMISSIONS"))
	text, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	fmt.Println("access", string(text), err)`, 1)
	}
	const role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: op%s}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n"
	cluster, inOne := fmt.Sprintf(role, "ClusterRole", ""), fmt.Sprintf(role, "Role", ", namespace: one")
	s.write("op/main.go", printing("one", cluster+inOne))
	c := s.start("dev", "op", "--kubeconfig", "access")
	c.says(1, "token: token-of-the-account")
	for _, want := range []string{
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"one"}}`,
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"yare-dev","namespace":"default"}}`,
		`"kind":"ClusterRoleBinding"`, `"kind":"RoleBinding"`, `"resourceAttributes":{"group":"","namespace":"one","resource":"pods","subresource":"","verb":"get"}`,
	} {
		if !strings.Contains(s.kubectlCalls(), want) {
			t.Errorf("kubectl was not called with %s:\n%s", want, s.kubectlCalls())
		}
	}
	if strings.Contains(c.out.String(), filepath.Join(s.dir, "access")+" 1") {
		t.Error("the operator has the kubeconfig of the administrator")
	}
	s.write("op/main.go", printing("two", cluster))
	c.says(1, "version two")
	for _, want := range []string{"delete rolebinding yare-dev --ignore-not-found --namespace one", "delete role yare-dev --ignore-not-found --namespace one"} {
		if !strings.Contains(s.kubectlCalls(), want) {
			t.Errorf("kubectl was not called with %s:\n%s", want, s.kubectlCalls())
		}
	}
	// The operator of before had webhooks.
	const webhooks = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: op}\nrules: [" +
		"{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], resourceNames: [op.default], verbs: [patch]}]\n"
	s.write("op/main.go", printing("three", webhooks))
	c.says(1, "version three")
	// Regression: no installation makes the configurations here, and the operator was not allowed to. So nothing was
	// validated.
	c.eventually(`"resources":["validatingwebhookconfigurations","mutatingwebhookconfigurations"],"verbs":["create"]`, s.kubectlCalls)
	s.write("op/main.go", printing("four", webhooks+inOne))
	c.says(1, "version four")
	if calls := s.kubectlCalls(); strings.Contains(calls, "delete validatingwebhookconfigurations") {
		t.Errorf("the configurations of an operator with webhooks are deleted:\n%s", calls)
	}
	s.write("op/main.go", printing("five", inOne))
	c.says(1, "version five")
	c.eventually("delete validatingwebhookconfigurations op.default --ignore-not-found", s.kubectlCalls)
	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
	s.leftNothing()
}

// Each build once had another name, operator-0 and operator-1. The name of the file is the field manager of a program, so
// a field that a save removed from an apply stayed in the object.
func TestDevKeepsTheNameOfTheProgram(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	named := func(version string) string {
		return strings.Replace(operator(version), `os.Getenv("KUBECONFIG"))`, `"is", os.Args[0])`, 1)
	}
	s.write("book-keeper/go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("book-keeper/main.go", named("one"))
	c := s.start("dev", "book-keeper")
	c.says(1, "version one is ")
	s.write("book-keeper/main.go", named("two"))
	c.says(1, "version two is ")
	c.says(2, "/book-keeper\n")
	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
	s.leftNothing()
}

// An operator with webhooks finds the relay of yare dev in its environment, at the same address after each save.
func TestDevHasAFrontForWebhooks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	printing := func(version string) string {
		return strings.Replace(operator(version), `os.Getenv("KUBECONFIG"))`, `"at", os.Getenv("YARE_WEBHOOKS_URL"), os.Getenv("YARE_WEBHOOKS_CA"), os.Getenv("YARE_WEBHOOKS_SOCKET"))`, 1)
	}
	s.write("op/main.go", printing("one"))
	c := s.start("dev", "op")
	c.says(1, "version one at https://127.0.0.1:")
	s.write("op/main.go", printing("two"))
	c.says(1, "version two at https://127.0.0.1:")
	found := regexp.MustCompile(`version \w+ at (\S+) (\S+) (\S+)\n`).FindAllStringSubmatch(c.out.String(), -1)
	if len(found) != 2 || !slices.Equal(found[0][1:], found[1][1:]) {
		t.Fatalf("the operators got %q, want the same values twice", found)
	}
	url, ca, socket := found[0][1], found[0][2], found[0][3]
	text, err := os.ReadFile(ca)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatalf("the CA: %v: %s", err, text)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	answer, err := client.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("an operator that does not listen is answered for with %d, want 503", answer.StatusCode)
	}
	if listener, err := net.Listen("unix", socket); err != nil {
		t.Errorf("the operator cannot listen: %v", err)
	} else {
		listener.Close()
	}
	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
	s.leftNothing()
}

func TestDevStartsBroken(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("main.go", "package main\n\nfunc main() {\n")
	c := s.start("dev", ".")
	c.says(1, "does not compile; waiting for the next save")
	s.write("main.go", operator("one"))
	c.says(1, "version one")
	c.signal(syscall.SIGTERM)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
	s.leftNothing()
	if status, _, all := s.run("dev", "../"+filepath.Base(s.dir), "--until-ready"); status != 0 || !strings.Contains(all, "everything is ready") {
		t.Errorf("status %d:\n%s", status, all)
	}
	s.write("main.go", "package main\n\nfunc main() {\n")
	if status, _, all := s.run("dev", ".", "--until-ready"); status != 1 || !strings.Contains(all, "main.go:") {
		t.Errorf("broken and nobody there to save: status %d:\n%s", status, all)
	}
}

// brokenOperator returns an operator that reports problems in place of its definitions, as
// operator.Main does.
func brokenOperator(problems string) string {
	return strings.Replace(operator("broken"), "\t\tfmt.Print(crd)\n", "\t\tfmt.Fprintf(os.Stderr, \"%s: %s\\n\", filepath.Base(os.Args[0]), "+strconv.Quote(problems)+")\n\t\tos.Exit(1)\n", 1)
}

// A mistake in a tag was reported as a program that is no operator.
func TestDevReportsMistakesInTags(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("op/go.mod", "module example.com/op\n\ngo 1.26\n")
	types := "\n// Spec has two tags.\ntype Spec struct {\n\tA string\n\tB struct {\n\t\tC string\n\t}\n}\n"
	broken := strings.Replace(brokenOperator(`main.Spec.A: the tag crd:"minLength=x": wrong
spec.go:1: main.Spec.B.C: the tag crd:"x": wrong
api.Port[string]: its method Rules: wrong
the custom resource of main.Spec: wrong
other.Type.A: wrong`), "\"os\"\n", "\"os\"\n\t\"path/filepath\"\n\t_ \"example.com/op/api\"\n", 1) + types
	s.write("op/api/api.go", "package api\n\ntype Port[T any] struct{}\n")
	s.write("op/main.go", broken)
	line := func(want string) string {
		for i, line := range strings.Split(broken, "\n") {
			if strings.TrimSpace(line) == want {
				return strconv.Itoa(i + 1)
			}
		}
		t.Fatalf("no line %q", want)
		return ""
	}
	want := []string{
		"yare: op/main.go:" + line("A string") + `: main.Spec.A: the tag crd:"minLength=x": wrong`,
		"yare: op/main.go:" + line("C string") + `: main.Spec.B.C: the tag crd:"x": wrong`,
		"yare: op/api/api.go:3: api.Port[string]: its method Rules: wrong",
		"yare: op/main.go:" + line("type Spec struct {") + ": the custom resource of main.Spec: wrong",
		"yare: other.Type.A: wrong",
	}
	c := s.start("dev", "op")
	c.says(1, strings.Join(want, "\n")+"\nyare: waiting for the next save")
	s.write("op/main.go", operator("one"))
	c.says(1, "version one")
	pid := s.operatorPid(c, 1)
	s.write("op/main.go", broken)
	c.says(2, want[0])
	c.says(1, "the operator built before goes on until the next save")
	if !alive(pid) {
		t.Error("a mistake in a tag ended the operator")
	}
	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
	if status, _, all := s.run("dev", "op", "--until-ready"); status != 1 || !strings.Contains(all, strings.TrimPrefix(want[0], "yare: ")) || strings.Contains(all, "no operator") {
		t.Errorf("status %d, want 1 and %q in:\n%s", status, want[0], all)
	}
	s.leftNothing()
}

func TestDevOperatorCrashes(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("main.go", strings.Replace(operator("bad"), "\tfor {\n", "\tos.Exit(3)\n\tfor {\n", 1))
	c := s.start("dev", ".")
	c.says(1, "the operator ended by itself (exit status 3); it is started again in 1s")
	c.says(1, "it is started again in 2s")
	s.write("main.go", operator("good"))
	c.says(1, "version good")
	c.signal(syscall.SIGINT)
	if status := c.wait(); status != 0 {
		t.Errorf("status %d:\n%s", status, c.out.String())
	}
}

// The folder with the built operator, which a killed yare leaves, once stayed when the next one
// was started within a minute.
func TestDevRemovesWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("main.go", operator("one"))
	c := s.start("dev", ".")
	c.says(1, "version one")
	killed := s.operatorPid(c, 1)
	c.signal(syscall.SIGKILL)
	<-c.ended
	if left, _ := filepath.Glob(filepath.Join(s.tmp, "yare-dev-*")); len(left) != 1 {
		t.Errorf("left behind by the killed one: %v, want its folder", left)
	}
	if status, _, all := s.run("dev", ".", "--until-ready"); status != 0 {
		t.Errorf("status %d:\n%s", status, all)
	}
	if alive(killed) {
		t.Error("the operator of the killed one still runs")
	}
	// The control plane of the killed one removes its own folder, in its own time.
	if left, _ := filepath.Glob(filepath.Join(s.tmp, "yare-dev-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDevUntilReady(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, sample string
		status       int
		want         string
	}{
		{"ready", aSample + "status: {ready: true}\n", 0, "everything is ready"},
		{"not ready", aSample + "status: {ready: false}\n", 1, "not ready after 1s: book/moby-dick: status.ready is false"},
		{"a sample that is refused", "nonsense\n", 1, "sample.yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("go.mod", "module example.com/op\n\ngo 1.26\n")
			s.write("main.go", operator("one"))
			s.write("sample.yaml", test.sample)
			timeout := "1m"
			if test.status != 0 {
				timeout = "1s"
			}
			status, _, all := s.run("dev", ".", "--until-ready", "--timeout", timeout)
			if status != test.status || !strings.Contains(all, test.want) {
				t.Errorf("status %d, want %d, and %q in:\n%s", status, test.status, test.want, all)
			}
			s.leftNothing()
		})
	}
}

// Killed with -9, yare cannot stop anything: the kernel and the end of input do (Linux).
func TestDevKilled(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("go.mod", "module example.com/op\n\ngo 1.26\n")
	s.write("main.go", operator("one"))
	c := s.start("dev", ".")
	c.says(1, "version one")
	pid := s.operatorPid(c, 1)
	c.signal(syscall.SIGKILL)
	<-c.ended
	deadline := time.Now().Add(30 * time.Second)
	for alive(pid) {
		if time.Now().After(deadline) {
			t.Fatal("the operator still runs")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// operatorPid waits until n operators were started and returns the process ID of the nth. An
// operator may print before yare reports its start.
func (s *sandbox) operatorPid(c *call, n int) int {
	s.t.Helper()
	c.says(n, "(process ")
	found := regexp.MustCompile(`\(process (\d+)\)`).FindAllStringSubmatch(c.out.String(), -1)
	if len(found) < n {
		s.t.Fatalf("yare reported the start of %d operators, not %d:\n%s", len(found), n, c.out.String())
	}
	pid, err := strconv.Atoi(found[n-1][1])
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
