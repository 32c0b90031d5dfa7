package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/yare-go/yare/explore/internal/finding"
)

// codeCoverage returns, by package, how many statements have run in the processes that wrote to a folder. A
// process writes to the folder if its program was compiled with go build -cover, and if it has ended in an orderly way.
func codeCoverage(ctx context.Context, folder string) (map[string]finding.Count, error) {
	written, err := filepath.Glob(filepath.Join(folder, "covcounters.*"))
	if err != nil || len(written) == 0 {
		return nil, err
	}
	temporary, err := os.MkdirTemp("", "yare-explore-cover-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	profile := filepath.Join(temporary, "profile")
	out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i", folder, "-o", profile).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go tool covdata: %w\n%s", err, out)
	}
	file, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return countStatements(file)
}

// countStatements returns the statements of a cover profile by package. A line of the profile is
// FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT.
func countStatements(profile io.Reader) (map[string]finding.Count, error) {
	packages := make(map[string]finding.Count)
	for lines := bufio.NewScanner(profile); ; {
		if !lines.Scan() {
			return packages, lines.Err()
		}
		line := lines.Text()
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		fields := strings.Fields(line)
		file, _, isBlock := strings.Cut(line, ":")
		if !isBlock || len(fields) != 3 {
			return nil, fmt.Errorf("the cover profile has a line that is no block: %s", line)
		}
		statements, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("the cover profile: %s: %w", line, err)
		}
		count := packages[path.Dir(file)]
		count.Total += statements
		if fields[2] != "0" {
			count.Done += statements
		}
		packages[path.Dir(file)] = count
	}
}
