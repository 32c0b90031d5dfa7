package manifests

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// The objects of a chart have placeholders for what the templates of Helm decide. YAML writes a
// placeholder between quotes, because it begins with a brace.
const (
	// HelmRelease and HelmNamespace are the name and the namespace of the objects of a chart. They have no space, because
	// rules of RBAC with these names are sorted by texts of their words.
	HelmRelease   = "{helm-release}"
	HelmNamespace = "{helm-namespace}"
	helmService   = "{helm service}"
)

// ForHelm returns the options of the objects of a chart. o has the name HelmRelease and the namespace
// HelmNamespace. The values of a release decide whether it has the objects that are made on request.
func ForHelm(o *Options) *Options {
	c := *o
	c.ManagedBy, c.OwnNamespace = helmService, false
	c.Replicas = max(o.Replicas, 2)
	c.NetworkPolicy, c.ServiceMonitor = true, true
	return &c
}

// WriteChart writes a chart of Helm into the folder dir. The objects are those of the options ForHelm(o). The
// values of o are the defaults of the chart.
//
// Each call makes the file templates/manifests.yaml anew. Chart.yaml and values.yaml belong to the user once
// they exist. So the template works without the values that an older values.yaml lacks.
func WriteChart(dir string, o *Options, objects []Object) error {
	c := chart{
		values: Object{
			"replicas": o.Replicas, "args": []any{},
			"env": []any{}, "envFrom": []any{}, "volumes": []any{}, "volumeMounts": []any{},
			"crds": true, "networkPolicy": o.NetworkPolicy, "serviceMonitor": o.ServiceMonitor,
		},
		expressions: []string{
			"{{", `{{ "{{" }}`, // the texts of authors are no templates
			quoted(HelmRelease), "{{ toJson .Release.Name }}", HelmRelease, "{{ .Release.Name }}",
			quoted(HelmNamespace), "{{ toJson .Release.Namespace }}", HelmNamespace, "{{ .Release.Namespace }}",
			quoted(helmService), "{{ .Release.Service }}",
		},
	}
	text := header + o.Program + " manifests --helm, which makes this file anew.\n"
	for _, object := range objects {
		if Kind(object) == "Namespace" {
			continue // helm install --create-namespace makes it
		}
		condition := c.addValues(object, isUserRole(object, objects))
		document, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write the %s %s: %w", Kind(object), Name(object), err)
		}
		template := "---\n" + addRanges(strings.NewReplacer(c.expressions...).Replace(string(document)))
		if condition != "" {
			template = "{{- if " + condition + " }}\n" + template + "{{- end }}\n"
		}
		text += template
	}
	values, err := yaml.Marshal(c.values)
	if err != nil {
		return fmt.Errorf("write values.yaml: %w", err)
	}
	return writeFiles(dir, []file{
		{name: "templates/manifests.yaml", text: text},
		{
			name: "Chart.yaml",
			text: fmt.Sprintf("apiVersion: v2\nname: %s\ntype: application\nversion: 0.1.0\nappVersion: %q\n", o.Program,
				o.Version),
			isWrittenOnce: true,
		},
		{name: "values.yaml", text: string(values), isWrittenOnce: true},
	})
}

// chart collects what the objects leave to the values of a chart.
type chart struct {
	// values are the defaults.
	values Object
	// expressions are pairs of a text and the expression of a template that takes its place.
	expressions []string
}

// addValues puts placeholders into an object, and returns the condition under which a release has
// the object, or nothing. isUserRole is true for a role of the users of a definition.
func (c *chart) addValues(object Object, isUserRole bool) (condition string) {
	if Kind(object) == "CustomResourceDefinition" || isUserRole {
		// Helm would delete the definition with the release, and with it everybody's objects.
		ObjectAt(object, "metadata", "annotations")["helm.sh/resource-policy"] = "keep"
		return ".Values.crds"
	}
	if isForPrometheus(object) {
		return ".Values.serviceMonitor"
	}
	if Name(object) != HelmRelease {
		return ""
	}
	switch Kind(object) {
	case "ServiceAccount":
		c.addValueNamed("serviceAccountAnnotations", ObjectAt(object, "metadata"), "annotations",
			"toJson .Values.serviceAccountAnnotations")
	case "PodDisruptionBudget":
		return "gt (int .Values.replicas) 1"
	case "NetworkPolicy":
		return ".Values.networkPolicy"
	case "ServiceMonitor":
		return ".Values.serviceMonitor"
	case "Deployment":
		spec := PodSpec(object)
		c.addValue(ObjectAt(object, "spec"), "replicas", "toJson .Values.replicas")
		for _, name := range []string{"imagePullSecrets", "nodeSelector", "affinity", "tolerations", "priorityClassName"} {
			c.addValue(spec, name, "toJson .Values."+name)
		}
		appendTo(spec, "volumes", []any{rangeOf("volumes")})
		if containers, ok := spec["containers"].([]any); ok && len(containers) > 0 {
			if container, ok := containers[0].(Object); ok {
				c.addContainerValues(container)
			}
		}
	}
	return ""
}

// isForPrometheus reports whether only Prometheus needs an object: the ServiceAccount by which it reads the metrics,
// its token, and the binding of its role. The role itself is for all readers.
func isForPrometheus(object Object) bool {
	reader := HelmRelease + "-metrics-reader"
	return Name(object) == reader || Kind(object) == "ClusterRoleBinding" && Name(object) == reader+"."+HelmNamespace
}

// addContainerValues puts placeholders into the container of the program.
func (c *chart) addContainerValues(container Object) {
	given := ""
	if args, ok := container["args"].([]any); ok {
		for _, arg := range args {
			given += " " + textExpression(fmt.Sprint(arg))
		}
	}
	c.addValue(container, "args", "toJson (concat (list"+given+") (.Values.args | default list))")
	c.addValue(container, "image", `toJson (required "the value image is missing" .Values.image)`)
	c.addValue(container, "resources", "toJson .Values.resources")
	for _, name := range []string{"env", "envFrom", "volumeMounts"} {
		appendTo(container, name, []any{rangeOf(name)})
	}
}

// rangeOf returns an item of a list that stands for the items of a value of the chart.
func rangeOf(name string) string { return "{helm items of " + name + "}" }

// addRanges replaces each item of rangeOf in a document by the items of the value, in lines with the same indentation.
// The list in the document and the value may be empty.
func addRanges(document string) string {
	lines := strings.Split(document, "\n")
	for i, line := range lines {
		indentation, item, isItem := strings.Cut(line, "- '{helm items of ")
		if name, ok := strings.CutSuffix(item, "}'"); ok && isItem {
			lines[i] = indentation + "{{ range .Values." + name + " }}\n" + indentation + "- {{ toJson . }}\n" + indentation +
				"{{ end }}"
		}
	}
	return strings.Join(lines, "\n")
}

// textExpression returns the expression of a template for a text. For example, the expression of --a={helm-release}-b
// is (print "--a=" .Release.Name "-b").
func textExpression(text string) string {
	for _, pair := range [][2]string{{HelmRelease, ".Release.Name"}, {HelmNamespace, ".Release.Namespace"}} {
		if before, after, ok := strings.Cut(text, pair[0]); ok {
			return "(print " + textExpression(before) + " " + pair[1] + " " + textExpression(after) + ")"
		}
	}
	return strconv.Quote(text)
}

// addValue makes a member of an object a value of the chart, with the member as its default unless
// the chart has another.
func (c *chart) addValue(in Object, name, expression string) {
	c.addValueNamed(name, in, name, expression)
}

// addValueNamed does what addValue does, for a value with another name than the member.
//
//go:noinline
func (c *chart) addValueNamed(value string, in Object, name, expression string) {
	if _, ok := c.values[value]; !ok {
		c.values[value] = in[name]
	}
	in[name] = "{helm " + value + "}"
	c.expressions = append(c.expressions, quoted("{helm "+value+"}"), "{{ "+expression+" }}")
}

// quoted returns a placeholder as YAML writes it.
func quoted(placeholder string) string { return "'" + placeholder + "'" }
