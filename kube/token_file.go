package kube

import (
	"cmp"
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

// tokenRetryPeriod is the time from a failed read of a token file to the next read. tokenLogPeriod is the time from
// one log line about failed reads to the next line.
const (
	tokenRetryPeriod = time.Second
	tokenLogPeriod   = time.Minute
)

// tokenFile is a token in a file that changes.
type tokenFile struct {
	path string
	// fallback is the token to use before the file could be read, or is empty.
	fallback string

	mu    sync.Mutex
	token string
	// readAt is when the file was read last. err is the error of this read.
	readAt   time.Time
	err      error
	loggedAt time.Time
}

// get returns the token. If the file cannot be read, get returns the last token.
func (f *tokenFile) get() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	period := tokenPeriod
	if f.err != nil {
		period = tokenRetryPeriod
	}
	if f.readAt.IsZero() || time.Since(f.readAt) >= period {
		f.readLocked()
	}
	if f.token == "" && f.fallback == "" {
		return "", f.err
	}
	return cmp.Or(f.token, f.fallback), nil
}

// readLocked reads the file. It keeps the last token if the file cannot be read.
func (f *tokenFile) readLocked() {
	token, err := readToken(f.path)
	f.readAt, f.err = time.Now(), err
	switch {
	case err == nil:
		f.token = token
	case f.token != "" && (f.loggedAt.IsZero() || time.Since(f.loggedAt) >= tokenLogPeriod):
		f.loggedAt = time.Now()
		slog.Error("cannot read the token again: using the last one", "error", err)
	}
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
