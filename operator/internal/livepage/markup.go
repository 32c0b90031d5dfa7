package livepage

import (
	"bytes"
	"net/url"
	"strings"
)

// markup is HTML that is being written. The methods escape each text that is not a constant of this package, so that names
// and messages of others stay text.
//
// Its methods are called at some hundred places. They are not inlined, because that would make a program 0.05 MB larger.
type markup struct{ buffer bytes.Buffer }

// write writes a constant template. Each % in the template stands for the next text, which is escaped. Example:
// write("<b>%</b>", "a<b") writes <b>a&lt;b</b>.
//
//go:noinline
func (m *markup) write(template string, texts ...string) {
	for _, text := range texts {
		constant, rest, _ := strings.Cut(template, "%")
		m.buffer.WriteString(constant)
		m.text(text)
		template = rest
	}
	m.buffer.WriteString(template)
}

// text writes a text. It escapes what html.EscapeString escapes. Package html would make each operator 0.07 MB larger, also
// one without the page, because its table of entities is initialised when a program starts.
//
//go:noinline
func (m *markup) text(text string) {
	rest := 0
	for i := range len(text) {
		var entity string
		switch text[i] {
		case '&':
			entity = "&amp;"
		case '<':
			entity = "&lt;"
		case '>':
			entity = "&gt;"
		case '"':
			entity = "&#34;"
		case '\'':
			entity = "&#39;"
		case '\r': // it would end a line of an event: see eventWriter
			entity = "&#13;"
		default:
			continue
		}
		m.buffer.WriteString(strings.ToValidUTF8(text[rest:i], "\uFFFD"))
		m.buffer.WriteString(entity)
		rest = i + 1
	}
	m.buffer.WriteString(strings.ToValidUTF8(text[rest:], "\uFFFD"))
}

// objectLink writes a link to the story of an object. base is the path of the page of stories, relative to the page that is
// written.
func (m *markup) objectLink(base string, o objectName) {
	namespace := o.Namespace
	if namespace != "" {
		namespace += "/"
	}
	m.write(`<a class="object" href="%object?kind=%&amp;namespace=%&amp;name=%"><span class="kind">%</span> <span class="namespace">%</span><b>%</b></a>`,
		base, url.QueryEscape(o.Kind), url.QueryEscape(o.Namespace), url.QueryEscape(o.Name), o.Kind, namespace, o.Name)
}

// String returns what was written.
func (m *markup) String() string { return m.buffer.String() }
