package kube

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// tokenPeriod is how long the token of a file is used before the file is read again. The kubelet
// renews the token of a ServiceAccount when 80 % of its validity has passed. The validity is at
// least ten minutes.
const tokenPeriod = 50 * time.Second

// tokenFile is a token in a file that changes.
type tokenFile struct {
	path string
	// fallback is the token to use before the file could be read, or is empty.
	fallback string

	mu     sync.Mutex
	token  string
	readAt time.Time
}

// get returns the token. If the file cannot be read, get returns the last token.
func (f *tokenFile) get() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token != "" && time.Since(f.readAt) < tokenPeriod {
		return f.token, nil
	}
	token, err := readToken(f.path)
	switch {
	case err == nil:
		f.token, f.readAt = token, time.Now()
	case f.token != "":
		slog.Error("cannot read the token again: using the last one", "error", err)
	case f.fallback != "":
		return f.fallback, nil
	default:
		return "", err
	}
	return f.token, nil
}

// readToken returns the token in a file.
func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("read the token: the file %s is empty", path)
	}
	return token, nil
}
