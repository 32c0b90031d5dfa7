package page

import (
	"net/url"
	"strings"
)

// markup is HTML that is being written. The methods escape each text that is not a constant of this package, so that
// names and messages of others stay text.
//
// Its methods are called at some hundred places. They are not inlined, because that would make a program 0.05 MB
// larger.
type markup struct{ builder strings.Builder }

// write writes a constant template. Each % in the template stands for the next text, which is escaped. Example:
// write("<b>%</b>", "a<b") writes <b>a&lt;b</b>.
func (m *markup) write(template string, texts ...string) {
	for _, text := range texts {
		constant, rest, _ := strings.Cut(template, "%")
		m.builder.WriteString(constant)
		m.text(text)
		template = rest
	}
	m.builder.WriteString(template)
}

// text writes a text. It escapes what html.EscapeString escapes. Package html would make each operator 0.07 MB larger,
// also one without the page, because its table of entities is initialised when a program starts.
func (m *markup) text(text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	// A carriage return would end a line of an event: see eventWriter.
	for _, each := range [...][2]string{
		{"&", "&amp;"},
		{"<", "&lt;"},
		{">", "&gt;"},
		{`"`, "&#34;"},
		{"'", "&#39;"},
		{"\r", "&#13;"},
	} {
		text = strings.ReplaceAll(text, each[0], each[1])
	}
	m.builder.WriteString(text)
}

// objectLink writes a link to the story of an object. base is the path of the page of stories, relative to the page
// that is written.
func (m *markup) objectLink(base string, o objectName) {
	namespace := o.Namespace
	if namespace != "" {
		namespace += "/"
	}
	m.write(`<a class="object" href="%object?kind=%&amp;namespace=%&amp;name=%"><span class="kind">%</span> <span class="namespace">%</span><b>%</b></a>`,
		base, url.QueryEscape(o.Kind), url.QueryEscape(o.Namespace), url.QueryEscape(o.Name), o.Kind, namespace, o.Name)
}

// String returns what was written.
func (m *markup) String() string { return m.builder.String() }
