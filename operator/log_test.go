package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"k8s.io/klog/v2" //nolint:depguard // what libraries log by klog goes to the log of the program

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/logctx"
)

// Without a terminal the log is JSON, one object a line. -v adds details.
func TestLogForMachines(t *testing.T) {
	t.Parallel()
	for _, verbose := range []bool{false, true} {
		var b bytes.Buffer
		level := new(logctx.Verbosity)
		if err := level.Set(strconv.FormatBool(verbose)); err != nil {
			t.Fatal(err)
		}
		log := slog.New(newLogHandler(&b, level))
		log.Debug("a detail")
		log.Info("hello", "n", 7)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if want := map[bool]int{false: 1, true: 2}[verbose]; len(lines) != want {
			t.Errorf("verbose %t: %d lines", verbose, len(lines))
		}
		var last struct {
			Msg string
			N   int
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Msg != "hello" || last.N != 7 {
			t.Errorf("verbose %t: %v: %s", verbose, err, b.String())
		}
	}
}

// The author's own calls of slog write to the log of the program while it runs.
func TestDefaultLogger(t *testing.T) {
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	var b bytes.Buffer
	restore := setDefaultLogger(newLogHandler(&b, slog.LevelInfo))
	slog.Info("from the author")
	log.Print("from a library")
	klog.InfoS("from Kubernetes", "n", 7)
	restore()
	checkText(t, "the log", b.String(), []string{"from the author", "from a library", `"msg":"from Kubernetes","n":7}`})
	if slog.Default() != before || log.Writer() != output || log.Flags() != flags {
		t.Error("the previous defaults are not restored")
	}
}

// Durations are numbers of seconds, which logs can be searched by.
func TestDurationsInJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	slog.New(newLogHandler(&b, slog.LevelInfo)).Info("done", "took", 2990*time.Millisecond, "next", 7810*time.Millisecond, slog.Group("part", "took", time.Minute))
	checkText(t, "the log", b.String(), []string{`"took":2.99,`, `"next":7.81,`, `"part":{"took":60}`})
}

func TestLogHandler(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	plain := slog.New(slog.NewTextHandler(&b, nil))
	logger := slog.New(LogHandler(LogHandler(plain.Handler())))
	ctx := logctx.With(t.Context(), plain, slog.String("task", "report"))
	for _, c := range []struct {
		log  func()
		want string
	}{
		{func() { logger.InfoContext(ctx, "x", "n", 7) }, "msg=x n=7 task=report\n"},
		{func() { logger.With("n", 7).InfoContext(ctx, "x") }, "msg=x n=7 task=report\n"},
		{func() { logger.Info("x") }, "msg=x\n"},
		{func() { controller.Log(ctx).Info("x") }, "msg=x task=report\n"},
		{func() { controller.Log(ctx).InfoContext(ctx, "x") }, "msg=x task=report\n"},
	} {
		b.Reset()
		c.log()
		if !strings.HasSuffix(b.String(), c.want) {
			t.Errorf("logged %s, not %s", b.String(), c.want)
		}
	}
	slogtest.Run(t, func(*testing.T) slog.Handler {
		b.Reset()
		return LogHandler(slog.NewJSONHandler(&b, nil))
	}, func(*testing.T) map[string]any {
		var record map[string]any
		if err := json.Unmarshal(b.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		return record
	})
}

// Run logs to the default logger, and does not change it. A default with LogHandler does not
// repeat the attributes.
func TestRunLeavesTheDefaultLogger(t *testing.T) {
	var b sharedBuffer
	before := slog.Default()
	defer setDefaultLogger(slog.NewTextHandler(&b, nil))()
	own := slog.Default()
	err := Run(t.Context(), noServer(), Task("report", func(ctx context.Context, rt *controller.Runtime) error {
		if slog.Default() != own {
			t.Error("Run has set another default logger")
		}
		controller.Log(ctx).InfoContext(ctx, "once")
		slog.InfoContext(ctx, "too")
		return nil
	}))
	if err != nil || slog.Default() != own || own == before {
		t.Errorf("Run has left another default logger, %v", err)
	}
	checkText(t, "the log", b.String(), []string{"msg=once task=report\n", "msg=too task=report\n"})
}
