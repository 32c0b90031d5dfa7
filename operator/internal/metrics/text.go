package metrics

import (
	"strconv"
	"strings"
)

// ContentType is that of what [Registry.WriteTo] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// text is metrics in the form in which they are read.
type text struct{ buf []byte }

func (t *text) head(d description) {
	t.add("# HELP ", d.name, " ", strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(d.help), "\n")
	t.add("# TYPE ", d.name, " ", string(d.kind), "\n")
}

func (t *text) sample(name, suffix string, labels, values []string, v float64) {
	t.add(name, suffix)
	for i, label := range labels {
		between := ","
		if i == 0 {
			between = "{"
		}
		t.add(between, label, `="`)
		t.escape(values[i])
		t.add(`"`)
	}
	if len(labels) > 0 {
		t.add("}")
	}
	t.add(" ")
	t.buf = strconv.AppendFloat(t.buf, v, 'g', -1, 64)
	t.add("\n")
}

func (t *text) add(parts ...string) {
	for _, part := range parts {
		t.buf = append(t.buf, part...)
	}
}

func (t *text) escape(value string) {
	for i := range len(value) {
		switch c := value[i]; c {
		case '\\', '"':
			t.buf = append(t.buf, '\\', c)
		case '\n':
			t.buf = append(t.buf, '\\', 'n')
		default:
			t.buf = append(t.buf, c)
		}
	}
}
