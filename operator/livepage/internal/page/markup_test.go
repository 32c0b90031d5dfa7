package page

import (
	"html"
	"strings"
	"testing"
)

func TestMarkup(t *testing.T) {
	t.Parallel()
	m := new(markup)
	m.write(`<a href="%">%</a> %`, `"><script>`, "<b>100%</b>", "%")
	if want := `<a href="&#34;&gt;&lt;script&gt;">&lt;b&gt;100%&lt;/b&gt;</a> %`; m.String() != want {
		t.Errorf("%s, want %s", m, want)
	}
}

// The text of others is what package html makes of it, apart from what would end a line of an event or is no text.
func FuzzMarkup(f *testing.F) {
	f.Add("<script>alert(1)</script>&amp;\"'\r\n\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		m := new(markup)
		m.text(text)
		got := m.String()
		want := strings.ReplaceAll(html.EscapeString(text), "\r", "&#13;")
		if strings.ToValidUTF8(want, "\uFFFD") != got {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if strings.ContainsAny(got, "<>\"'\r") {
			t.Errorf("%q is %q", text, got)
		}
	})
}
