package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// patience is how long the browser may take on a machine that is busy. A change shows within a second on one that is not.
const patience = 20 * time.Second

func TestChangesShow(t *testing.T) {
	t.Parallel()
	cluster, api, namespace, page := startWithNotes(t)
	b := newTab(t)
	b.open(t, page)
	create(t, api, "hello", "first")
	took := b.wait(t, patience, "the row of the new Note", rowWith("hello", "added", `.data.text`, `"first"`))
	setText(t, api, "hello", "second")
	took = max(took, b.wait(t, patience, "the row of the change", rowWith("hello", "modified", `"first"`, `"second"`, ".spec.text")))
	t.Logf("a change showed after %s", took)

	t.Run("the cause has what somebody else has changed", func(t *testing.T) {
		configs := kube.Namespaced[corev1.ConfigMap](cluster.Client(t), namespace)
		if _, err := configs.Modify(t.Context(), "hello", func(c *corev1.ConfigMap) error { c.Data["text"] = "by hand"; return nil }); err != nil {
			t.Fatal(err)
		}
		b.wait(t, patience, "the row of the ConfigMap", rowWith("ConfigMap", "modified", `"by hand"`))
	})
	t.Run("a secret is not shown", func(t *testing.T) {
		const secret = "the-content-of-the-secret"
		if _, err := api.Modify(t.Context(), "hello", func(n *Note) error { n.Spec.Secret = secret; return nil }); err != nil {
			t.Fatal(err)
		}
		b.wait(t, patience, "the row of the Secret", rowWith("patch", "Secret", "changed"))
		// The user has written the secret into the Note, whose content is shown. Nothing else has the secret.
		rows := b.text(t, `[...document.querySelectorAll(".write")].filter((each) => each.innerText.includes("Secret")).map((each) => each.innerHTML).join()`)
		if strings.Contains(rows, secret) || strings.Contains(rows, "dGhlLWNvbnRlbnQ") || !strings.Contains(rows, "changed") {
			t.Errorf("the page shows the secret: %s", rows)
		}
	})
	t.Run("the state", func(t *testing.T) {
		b.wait(t, patience, "the state", `["ready", "Note objects", "Ready True: ", "notes.browser.example.com", "watching", "resident"].every((text) => document.querySelector("#state")?.innerText.includes(text))`)
	})
	t.Run("an error shows, and then that it is over", func(t *testing.T) {
		setText(t, api, "hello", "fail the disk is full")
		b.wait(t, patience, "the failing object", `document.querySelector("#state")?.innerText.includes("the disk is full")`)
		setText(t, api, "hello", "third")
		b.wait(t, patience, "the end of the error", `!document.querySelector("#state")?.innerText.includes("the disk is full")`)
	})
	t.Run("the story", func(t *testing.T) {
		b.open(t, page+"/object?kind=Note&namespace="+namespace+"&name=hello")
		b.wait(t, patience, "the timeline", `["change", "reconcile", "Ready True", "the disk is full", "generation"].every((text) => document.body.innerText.includes(text))`)
		setText(t, api, "hello", "fourth")
		b.wait(t, patience, "a new step", `document.querySelector("#story").innerText.includes('"fourth"')`)
		b.screenshots(t, page+"/object?kind=Note&namespace="+namespace+"&name=hello", "story")
	})
	setText(t, api, "hello", "fail the disk is full")
	b.screenshots(t, page, "reconciles")
	b.check(t)
}

func TestFilters(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	one, first := notes(t, cluster)
	two, second := notes(t, cluster)
	page := startProgram(t, cluster, first, second)
	b := newTab(t)
	b.open(t, page+"?namespace="+first)
	for _, api := range []kube.API[Note]{two, one} {
		create(t, api, "alpha", "hello")
		create(t, api, "beta", "hello")
	}
	b.wait(t, patience, "the rows", rowWith("alpha", "added")+" && "+rowWith("beta", "added"))
	const objects = `[...new Set([...document.querySelectorAll("#reconciles .row td:nth-child(2)")].map((each) => each.innerText.trim()))].sort().join()`
	if got, want := b.text(t, objects), fmt.Sprintf("Note %[1]s/alpha,Note %[1]s/beta", first); got != want {
		t.Errorf("live, the filter by namespace selects %s, want %s", got, want)
	}
	// The form sends the filter without a script.
	b.run(t, chromedp.SetValue(`input[name="name"]`, "ALP"), chromedp.Click(`.filter button`))
	b.wait(t, patience, "the filtered page", `location.search.includes("name=ALP") && document.querySelector("#connection")?.textContent === "live"`)
	if got, want := b.text(t, objects), "Note "+first+"/alpha"; got != want {
		t.Errorf("the form selects %s, want %s", got, want)
	}
	for query, want := range map[string]string{
		"show=failed&namespace=" + first:                       "",
		"cause=ConfigMap&name=alpha&namespace=" + second:       "Note " + second + "/alpha",
		"kind=ConfigMap":                                       "",
		"kind=Note&show=changed&name=beta&namespace=" + second: "Note " + second + "/beta",
	} {
		b.open(t, page+"?"+query)
		if got := b.text(t, objects); got != want {
			t.Errorf("%s selects %q, want %q", query, got, want)
		}
	}
	b.check(t)
}

// What others write is text, also where the browser would take it for markup.
func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	_, api, namespace, page := startWithNotes(t)
	b := newTab(t)
	b.open(t, page+"?namespace="+namespace)
	const attack = `</td><script>document.title="attacked"</script><img src="x" onerror="document.title='attacked'">`
	for name, text := range map[string]string{"data": attack, "failing": "fail " + attack + "\r\n\nevent: rows\ndata: <b id=forged>\n\n"} {
		create(t, api, name, text)
	}
	b.wait(t, patience, "the text of the attack", rowWith("failing", "onerror=", "event: rows")+" && "+rowWith("data", ".data.text", "onerror="))
	b.wait(t, patience, "the failing object", `document.querySelector("#state")?.innerText.includes("onerror=")`)
	for _, at := range []string{
		page, page + "?name=" + url.QueryEscape(attack) + "&cause=" + url.QueryEscape(`"><script>`),
		page + "/object?kind=" + url.QueryEscape(attack) + "&name=" + url.QueryEscape(attack),
		page + "/object?kind=Note&namespace=" + namespace + "&name=failing",
	} {
		b.open(t, at)
		if found := b.text(t, `document.querySelectorAll("img, script:not([src]), #forged, [onerror]").length + (document.title === "attacked")`); found != "0" {
			t.Errorf("%s has markup of somebody else: %s", at, b.text(t, "document.body.innerHTML"))
		}
	}
	b.check(t)
}

// A hundred objects a second do not freeze the page: the browser goes on to run its timers, the number of rows is bounded,
// and a click has its effect.
func TestManyObjects(t *testing.T) {
	t.Parallel()
	_, api, _, page := startWithNotes(t)
	b := newTab(t)
	b.open(t, page)
	b.run(t, chromedp.Evaluate(`window.longest = 0; window.added = 0; window.last = performance.now();
		setInterval(() => { const now = performance.now(); window.longest = Math.max(window.longest, now - window.last); window.last = now; }, 20);
		new MutationObserver((changes) => { for (const each of changes) window.added += [...each.addedNodes].filter((node) => node.nodeType === 1).length; }).observe(document.querySelector("#reconciles"), { childList: true }); 0`, nil))
	for i := range 30 {
		create(t, api, fmt.Sprintf("note-%02d", i), busyText)
	}
	const rows = 1000
	took := b.wait(t, 2*time.Minute, "the rows", fmt.Sprintf("window.added > %d", rows))
	t.Logf("%.0f rows a second; the longest wait of a timer was %s ms", rows/took.Seconds(), b.text(t, "Math.round(window.longest)"))
	if isBounded := b.text(t, `document.querySelectorAll(".row").length <= 300`); isBounded != "true" {
		t.Errorf("the page has too many rows")
	}
	if isFrozen := b.text(t, `window.longest > 5000`); isFrozen == "true" {
		t.Errorf("the page was frozen for %s ms", b.text(t, "window.longest"))
	}
	b.run(t, chromedp.Click("#pause"))
	b.wait(t, patience, "the pause", `document.querySelector("#connection").textContent === "paused"`)
	before := b.text(t, "window.added")
	b.run(t, chromedp.Sleep(time.Second))
	if after := b.text(t, "window.added"); after != before {
		t.Errorf("rows come during the pause: %s, then %s", before, after)
	}
	b.check(t)
}

// Without a script the page is a table of what there was when it was loaded.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	_, api, namespace, page := startWithNotes(t)
	b := newTab(t, chromedp.Flag("blink-settings", "scriptEnabled=false"))
	create(t, api, "hello", "world")
	yaretest.Eventually(t, func() error {
		var rows string
		err := chromedp.Run(b.ctx, chromedp.Navigate(page+"?show=changed&namespace="+namespace), chromedp.TextContent("#reconciles", &rows))
		if err == nil && (!strings.Contains(rows, "hello") || !strings.Contains(rows, `"world"`)) {
			err = fmt.Errorf("the table is %s", rows)
		}
		return err
	})
}

// rowWith returns a condition in JavaScript: a row has all these texts.
func rowWith(texts ...string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf(`[...document.querySelectorAll("#reconciles .row")].some((row) => [%s].every((text) => row.textContent.includes(text)))`, strings.Join(quoted, ","))
}
