package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/logctx"
)

// defaultTimeout is how long each wait of the commands uninstall and migrate may take.
const defaultTimeout = 5 * time.Minute

// prompt asks the user of a command.
type prompt struct {
	// in is where the user answers. It is nil without an input.
	in  *os.File
	out io.Writer
	// isConfirmed is true if the user has agreed on the command line.
	isConfirmed bool
	// timeout is how long the user may take to answer.
	timeout time.Duration
}

// confirm returns an error unless the user types yes.
func (p prompt) confirm(ctx context.Context) error {
	if p.isConfirmed {
		return nil
	}
	if !logctx.IsTerminal(p.in) {
		return errors.New("the standard input is no terminal, so nobody can confirm: give --yes")
	}
	fmt.Fprint(p.out, "type yes to go on: ")
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended, except with the process
		line := make([]byte, 80)
		n, _ := p.in.Read(line) // without an answer there is no yes
		answer <- strings.TrimSpace(string(line[:n]))
	}()
	select {
	case text := <-answer:
		if text == "yes" {
			return nil
		}
		return errors.New("the answer is not yes")
	case <-time.After(p.timeout):
		return fmt.Errorf("there is no answer after %s", p.timeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}
