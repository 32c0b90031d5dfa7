package logctx

import (
	"errors"
	"log/slog"
	"strconv"
)

// Verbosity is the level of a log and the value of the flag -v: a boolean, or a level as klog has it. Levels above 0 log
// details. The zero Verbosity logs none. The methods may be called concurrently.
type Verbosity struct{ level slog.LevelVar }

// Level returns the lowest level that is logged: see [slog.Leveler].
func (v *Verbosity) Level() slog.Level { return v.level.Level() }

// IsVerbose reports whether details are logged.
func (v *Verbosity) IsVerbose() bool { return v.Level() < slog.LevelInfo }

// String returns whether details are logged, for package flag.
func (v *Verbosity) String() string { return strconv.FormatBool(v.IsVerbose()) }

// Set sets the level to a value of the flag.
func (v *Verbosity) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 8)
	isOn := n > 0
	if err != nil {
		if isOn, err = strconv.ParseBool(text); err != nil {
			return errors.New("write -v, or a level such as -v=4")
		}
	}
	level := slog.LevelInfo
	if isOn {
		level = slog.LevelDebug
	}
	v.level.Set(level)
	return nil
}

// IsBoolFlag makes -v the same as -v=true.
func (v *Verbosity) IsBoolFlag() bool { return true }
