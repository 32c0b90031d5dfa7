package metrics

import "strings"

// series is the name of a metric with those of its labels.
type series struct {
	name   string
	labels []string
}

// with returns the name of the series with these values of its labels, as Prometheus writes it.
func (s series) with(values []string) string {
	if len(s.labels) != len(values) {
		panic("the metric " + s.name + " was given a wrong number of values for its labels")
	}
	if len(values) == 0 {
		return s.name
	}
	text := append([]byte(s.name), '{')
	for i, label := range s.labels {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, label...), '=', '"')
		text = appendEscaped(text, values[i])
		text = append(text, '"')
	}
	return string(append(text, '}'))
}

// appendEscaped appends the value of a label.
func appendEscaped(text []byte, value string) []byte {
	if !strings.ContainsAny(value, "\\\"\n") {
		return append(text, value...)
	}
	return append(text, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)...)
}
