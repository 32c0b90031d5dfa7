// Package fakeplane is a fake of the control plane binary, for tests of the code that starts and
// controls it. A test program acts as the fake when it is called by the name of the binary, so
// nothing has to be built.
package fakeplane

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

// BinaryName is the name a link to the test program must have for Main to act.
const BinaryName = "controlplane"

// NodeBinaryName is the name a link to the test program must have for Main to act as the program of
// the real node.
const NodeBinaryName = "realnode"

// LogVariable is the environment variable with the name of a file. The fake kubectl appends its calls to the
// file.
const LogVariable = "YARE_FAKE_LOG"

// Link creates the fake binary in dir and returns its path.
func Link(dir string) (string, error) { return link(dir, BinaryName) }

// LinkNode creates the fake binary of the real node in dir and returns its path.
func LinkNode(dir string) (string, error) { return link(dir, NodeBinaryName) }

func link(dir, binary string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, binary)
	return name, os.Symlink(self, name)
}

// Main acts as the control plane binary and ends the process, if the process was called by that
// name. A TestMain calls Main first.
func Main() {
	if filepath.Base(os.Args[0]) == NodeBinaryName && len(os.Args) >= 2 {
		os.Exit(node(os.Args[1:]))
	}
	if filepath.Base(os.Args[0]) != BinaryName || len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "up":
		os.Exit(up(os.Args[2:]))
	case "kubectl":
		os.Exit(kubectl(os.Args[2:]))
	case "child":
		// It ends with its parent, as the real components do.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "fake control plane: unknown command %v\n", os.Args[1:])
	os.Exit(2)
}

func up(args []string) int {
	file := ""
	if i := slices.Index(args, "--kubeconfig"); i >= 0 {
		file = args[i+1]
	}
	say := func(event map[string]any) {
		line, _ := json.Marshal(event)
		fmt.Printf("%s\n", line)
	}
	if slices.Contains(args, "fail") {
		say(map[string]any{"event": "failed", "error": "etcd: no space left on device"})
		return 1
	}
	if slices.Contains(args, "die") {
		fmt.Fprintln(os.Stderr, "panic: oh dear")
		return 2
	}
	if slices.Contains(args, "quit") {
		return 0
	}
	dir, err := os.MkdirTemp("", "yare-fake-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if file == "" {
		file = filepath.Join(dir, "kubeconfig")
	}
	say(map[string]any{"event": "starting", "component": "etcd"})
	child := exec.Command(os.Args[0], "child")
	in, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	if err == nil {
		text := "# up " + strings.Join(args, " ") + "\napiVersion: v1\nkind: Config\n"
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		say(map[string]any{"event": "failed", "error": err.Error()})
		return 1
	}
	defer os.Remove(file)
	defer func() { _ = in.Close(); _ = child.Wait() }()
	say(map[string]any{
		"event": "ready", "kubeconfig": file, "server": "https://127.0.0.1:1", "dir": dir,
		"seconds": 0.5, "pids": map[string]int{"etcd": child.Process.Pid, "up": os.Getpid()},
	})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	go func() {
		serve(say, dir)
		ended <- os.Interrupt
	}()
	<-ended
	return 0
}

// serve answers commands until its input ends.
func serve(say func(map[string]any), dir string) {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var c struct {
			ID        int
			Do        string
			Component string
		}
		if json.Unmarshal(input.Bytes(), &c) != nil {
			return
		}
		switch {
		case c.Do == "compact":
			say(map[string]any{"id": c.ID, "ok": true, "revision": 42})
		case c.Component == "nothing":
			say(map[string]any{"id": c.ID, "error": "there is no component nothing"})
		case c.Do == "kill" && c.Component == "up":
			_ = os.RemoveAll(dir)
			os.Exit(3)
		case c.Do == "pause":
			// There is no answer, as from a plane that hangs.
		default:
			say(map[string]any{"event": "exited", "component": c.Component, "error": "on purpose"})
			say(map[string]any{"id": c.ID, "ok": true})
		}
	}
}

func kubectl(args []string) int {
	input := ""
	if slices.Contains(args, "-") {
		data, _ := io.ReadAll(os.Stdin)
		input = string(data)
	}
	if name := os.Getenv(LogVariable); name != "" {
		if file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
			_, _ = fmt.Fprintf(file, "%s\n%s\n", strings.Join(args, " "), input)
			_ = file.Close()
		}
	}
	switch {
	case slices.Contains(args, "apply") && strings.Contains(input, "# refuse it"):
		fmt.Fprintln(os.Stderr,
			`The CustomResourceDefinition "books.example.com" is invalid: x-kubernetes-validations[0].rule: Invalid value: `+
				`{"Rule":"self.a \u003e 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR`)
		return 1
	case slices.Contains(args, "apply"):
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(input), &object); err != nil || object.Kind == "" {
			fmt.Fprintln(os.Stderr, "error: no object in the input")
			return 1
		}
		fmt.Printf("%s/%s serverside-applied\n", strings.ToLower(object.Kind), object.Metadata.Name)
	case slices.Contains(args, "token"):
		fmt.Println("token-of-the-account")
	case slices.Contains(args, "get") && slices.Contains(args, "json"):
		data, err := yaml.YAMLToJSON([]byte(input))
		if err != nil {
			return 1
		}
		_, _ = os.Stdout.Write(data)
	case slices.Contains(args, "get") && slices.Contains(args, "crd"):
		fmt.Println("status: {conditions: [{type: Established, status: \"True\"}]}")
	case slices.Contains(args, "environment"):
		fmt.Printf("%q KUBECONFIG=%s\n", args, os.Getenv("KUBECONFIG"))
	case slices.Contains(args, "cat"):
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case slices.Contains(args, "exit"):
		status, _ := strconv.Atoi(args[len(args)-1])
		return status
	}
	return 0
}
