package operator_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
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
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &caller{cmd: exec.CommandContext(ctx, self, "as:caller")}
	c.cmd.Stderr = os.Stderr
	if c.input, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.output = bufio.NewReader(output)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	return c, json.NewEncoder(c.input).Encode(settings)
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

// runCaller is the main function of a caller. Its input has the settings in the first line, and a number of calls in each
// further line.
func runCaller() error {
	input := json.NewDecoder(os.Stdin)
	var settings callerSettings
	if err := input.Decode(&settings); err != nil {
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
		if err := input.Decode(&n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for range n {
			if err := call(); err != nil {
				return err
			}
		}
		fmt.Println("answered")
	}
}
