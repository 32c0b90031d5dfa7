package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A tab is a tab of a browser. It collects what the browser reports as errors, such as violations of the content security
// policy.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// newTab starts a browser with a tab, which ends with the test. Without Chromium the test is skipped.
func newTab(t *testing.T, options ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium: apt-get install chromium, or `.ci/run test` as root")
	}
	options = append(append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox), options...)
	ctx, stopBrowser := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stopBrowser)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &tab{ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			b.problems = append(b.problems, fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text, " ", e.Entry.URL))
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			b.problems = append(b.problems, fmt.Sprint("console: ", e.Args))
		}
	})
	b.run(t, log.Enable(), runtime.Enable())
	return b
}

// run runs actions.
func (b *tab) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// open opens a page and waits until it receives events.
func (b *tab) open(t *testing.T, url string) {
	t.Helper()
	b.run(t, chromedp.Navigate(url))
	b.wait(t, 20*time.Second, "the page to be live", `document.querySelector("#connection")?.textContent === "live"`)
}

// wait waits until a condition in JavaScript is true. It returns how long that took.
func (b *tab) wait(t *testing.T, timeout time.Duration, what, condition string) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		isTrue := false
		// While the browser loads another page, there is nothing to evaluate.
		if err := chromedp.Run(b.ctx, chromedp.Evaluate("Boolean("+condition+")", &isTrue)); isTrue {
			return time.Since(began)
		} else if time.Since(began) > timeout || b.ctx.Err() != nil {
			t.Fatalf("wait for %s: after %s it is not there (%v)\nthe page: %s", what, timeout, err, b.text(t, "document.body?.innerText"))
		}
	}
}

// text returns the value of an expression in JavaScript as a text.
func (b *tab) text(t *testing.T, expression string) (text string) {
	t.Helper()
	b.run(t, chromedp.Evaluate("String("+expression+")", &text))
	return text
}

// check fails t if the browser has reported a problem.
func (b *tab) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, problem := range b.problems {
		t.Errorf("the browser reports: %s", problem)
	}
	b.problems = nil
}

// screenshots writes pictures of a page, light and dark, wide and narrow, into the folder that YARE_SCREENSHOTS names. It
// checks that the page is not wider than the window.
func (b *tab) screenshots(t *testing.T, url, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{375, 1200} {
			b.run(t,
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.EmulateViewport(width, 1500))
			b.open(t, url)
			if overflow := b.text(t, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); overflow != "0" {
				t.Errorf("%s at %d pixels is %s pixels too wide", name, width, overflow)
			}
			if back := b.text(t, `getComputedStyle(document.body).backgroundColor`); (back == "rgb(13, 17, 23)") != (scheme == "dark") {
				t.Errorf("%s in the %s scheme has the background %s", name, scheme, back)
			}
			if folder := os.Getenv("YARE_SCREENSHOTS"); folder != "" {
				var picture []byte
				b.run(t, chromedp.CaptureScreenshot(&picture))
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), picture, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	b.run(t, chromedp.EmulateViewport(1200, 900))
}
