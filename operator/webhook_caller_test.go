package operator

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// callerSettings are what a process that calls a webhook has to know.
type callerSettings struct {
	URL    string
	Bundle []byte
	Body   []byte
	// Want is a part of each answer.
	Want string
}

// caller is a process that calls a webhook, as an API server does. So the processor time of the calling end is not that of
// the program.
type caller struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// startCaller starts a caller.
func startCaller(ctx context.Context, settings callerSettings) (*caller, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &caller{cmd: exec.CommandContext(ctx, self, "as:caller", string(text))}
	c.cmd.Stderr = os.Stderr
	if c.input, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.output = bufio.NewReader(output)
	return c, c.cmd.Start()
}

// call makes n calls, one after the other, and returns when they are answered.
func (c *caller) call(n int) error {
	if _, err := fmt.Fprintln(c.input, n); err != nil {
		return err
	}
	line, err := c.output.ReadString('\n')
	if err != nil {
		return err
	}
	if line != "answered\n" {
		return fmt.Errorf("the caller reports %s", strings.TrimSpace(line))
	}
	return nil
}

// end ends the process.
func (c *caller) end() error {
	_ = c.input.Close() // the process ends at the end of its input
	return c.cmd.Wait()
}

// runCaller is the main function of a caller. It makes as many calls as each line of its input says.
func runCaller() error {
	var settings callerSettings
	if err := json.Unmarshal([]byte(os.Args[1]), &settings); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(settings.Bundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	call := func() error {
		answer, err := client.Post(settings.URL, "application/json", bytes.NewReader(settings.Body))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was read to its end
		if err == nil && !bytes.Contains(text, []byte(settings.Want)) {
			err = fmt.Errorf("the answer lacks %q: %s", settings.Want, text)
		}
		return err
	}
	for {
		var n int
		if _, err := fmt.Scanln(&n); err != nil {
			return nil // the end of the input
		}
		for range n {
			if err := call(); err != nil {
				return err
			}
		}
		fmt.Println("answered")
	}
}
