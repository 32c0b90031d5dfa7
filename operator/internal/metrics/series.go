package metrics

import "strings"

// series names the series of one metric.
type series struct {
	name   string
	labels []string
}

// of is the series with these values of its labels, as Prometheus writes it.
func (s series) of(values []string) string {
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

func appendEscaped(text []byte, value string) []byte {
	if !strings.ContainsAny(value, "\\\"\n") {
		return append(text, value...)
	}
	return append(text, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)...)
}
