package metrics

import "strings"

// description is the name of a metric with the names of its labels.
type description struct {
	name   string
	labels []string
}

// labelsOf returns the labels with these values, as Prometheus writes them between braces.
func (d description) labelsOf(values []string) string {
	if len(d.labels) != len(values) {
		panic("the metric " + d.name + " was given a wrong number of values for its labels")
	}
	var text []byte
	for i, label := range d.labels {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, label...), '=', '"')
		text = appendEscaped(text, values[i])
		text = append(text, '"')
	}
	return string(text)
}

// sample returns the name of a sample with its labels, as Prometheus writes it.
func sample(name, labels string) string {
	if labels == "" {
		return name
	}
	return name + "{" + labels + "}"
}

// appendEscaped appends the value of a label.
func appendEscaped(text []byte, value string) []byte {
	if !strings.ContainsAny(value, "\\\"\n") {
		return append(text, value...)
	}
	return append(text, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)...)
}
