package dev

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

type gadgetSpec struct{}

func (gadgetSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Gadget"}
}

type gadgetStatus struct {
	Times int `json:"times"`
}

type gadget = kube.CustomResource[gadgetSpec, gadgetStatus]

// runGadgets runs a controller that changes the status of its object once, and then reconciles
// it every minute. Its log goes to out.
func runGadgets(t *testing.T, out io.Writer, d time.Duration) {
	t.Helper()
	server := fakeserver.New()
	if _, err := kube.Everywhere[gadget](server.Client()).Create(t.Context(), &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	caches := cache.New(server.Client())
	defer caches.Close()
	part := controller.New(func(ctx context.Context, g *gadget, c *kube.Client) (controller.Action, error) {
		g.Status.Times = 1
		return controller.RequeueAfter(time.Minute), c.ApplyStatus(ctx, g)
	})
	log := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := part.Start(ctx, &controller.Runtime{Client: server.Client(), Cache: caches, Log: log}); err != nil {
		t.Error(err)
	}
}

// A reconcile that changes something is a short line. Reconciles without a change are counted: in one
// session they were half of 1,279 lines.
func TestReconcilesInShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var short, long bytes.Buffer
		view, verbose := newLogView(&short, false), newLogView(&long, true)
		runGadgets(t, io.MultiWriter(view, verbose), 4*time.Minute+time.Second)
		view.flush()
		lines := strings.Split(strings.TrimSpace(short.String()), "\n")
		if want := ` INF gadget reconciled default/one (Gadget default/one there at the start): patch gadgets.example.com "default/one" status`; !strings.HasSuffix(lines[0], want) {
			t.Errorf("shown: %q, not %q", lines[0], want)
		}
		counted := 0
		for _, line := range lines[1:] {
			var n int
			_, count, _ := strings.Cut(line, " INF ")
			if _, err := fmt.Sscanf(count, "%d more", &n); err != nil || !strings.HasSuffix(line, "changed nothing") {
				t.Errorf("shown: %q", line)
			}
			counted += n
		}
		if all := strings.Count(long.String(), "reconciled"); all < 5 || counted != all-1 || !strings.Contains(long.String(), "took=") {
			t.Errorf("counted %d of\n%s", counted, long.String())
		}
	})
}

func TestOtherLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	view := newLogView(&b, false)
	const unchanged = `{"time":"2026-11-22T12:00:0%dZ","level":"DEBUG","msg":"reconciled","controller":"gadget","namespace":"","name":"one","cause":"requeue","wrote":["patch x \"y\" (skipped)"],"took":0.1}` + "\n"
	input := `{"time":"2026-11-22T12:00:00Z","level":"INFO","msg":"starting","program":"gadgets","version":"(devel)","yare":"(devel)","go":"go1.26.0"}` + "\n" +
		`{"time":"2026-11-22T12:00:00Z","level":"INFO","msg":"starting","pump":3}` + "\n" +
		`{"time":"2026-11-22T12:00:00Z","level":"ERROR","msg":"it panicked","n":7,"at":"main.go:42","stack":"goroutine 7 [running]:\nmain.main()"}` + "\n" +
		fmt.Sprintf(unchanged, 1) + fmt.Sprintf(unchanged, 2) +
		strings.Replace(fmt.Sprintf(unchanged, 3), " (skipped)", "", 1) +
		`{"time":"2026-11-22T12:00:04Z","level":"DEBUG","msg":"reconcile failed","wrote":[],"error":"no"}` + "\n" +
		`{"time":"2026-11-22T12:00:04Z","level":"ERROR","msg":"reconcile failed","controller":"gadget","namespace":"default","name":"one","reconcileID":"8b","cause":"retry","wrote":[],"reads":0,"took":0.1,"error":"the disk is full","retry":0.49}` + "\n" +
		`{"time":"2026-11-22T12:00:04Z","level":"ERROR","msg":"cleanup failed","controller":"gadget","namespace":"default","name":"one","reconcileID":"8b","cause":"retry","wrote":["patch x \"y\" status","patch x \"z\" (skipped)"],"reads":0,"took":0.1,"error":"the disk is full","retry":4.2}` + "\n" +
		"panic: at the disco\n{not JSON}\n" + `{"level":"INFO"}` + "\n" + fmt.Sprintf(unchanged, 5) + "the end"
	// Lines come in pieces.
	for _, piece := range strings.SplitAfter(input, ":") {
		if _, err := view.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	view.flush()
	want := []string{
		"12:00:00 INF starting pump=3",
		"12:00:00 ERR it panicked n=7 at=main.go:42", "  goroutine 7 [running]:", "  main.main()",
		`12:00:03 INF gadget reconciled one (requeue): patch x "y" (2 more reconciles changed nothing)`,
		"12:00:04 DBG reconcile failed wrote=[] error=no",
		"12:00:04 ERR gadget reconcile failed default/one (retry): the disk is full retry=490ms",
		`12:00:04 ERR gadget cleanup failed default/one (retry): the disk is full (wrote patch x "y" status) retry=4.2s`,
		"panic: at the disco", "{not JSON}", `{"level":"INFO"}`, "the end",
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, line := range want {
		if i >= len(lines) || lines[i] != line {
			t.Fatalf("shown:\n%s\nwant:\n%s", b.String(), strings.Join(want, "\n"))
		}
	}
	if last := lines[len(lines)-1]; len(lines) != len(want)+1 || !strings.HasSuffix(last, "INF 1 more reconcile changed nothing") {
		t.Errorf("shown last: %q", last)
	}
}
