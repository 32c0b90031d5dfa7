package manifests

import (
	"fmt"
	"maps"
	"slices"
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
	c.ManagedBy, c.OwnNamespace, c.HostNetwork, c.runAsUser = helmService, false, false, 0
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
			"podLabels": Object{}, "podAnnotations": Object{}, "hostNetwork": o.HostNetwork, "runAsUser": nil,
		},
		expressions: []string{
			"{{", `{{ "{{" }}`, // the texts of authors are no templates
			quoted(HelmRelease), "{{ toJson .Release.Name }}", HelmRelease, "{{ .Release.Name }}",
			quoted(HelmNamespace), "{{ toJson .Release.Namespace }}", HelmNamespace, "{{ .Release.Namespace }}",
			quoted(helmService), "{{ .Release.Service }}",
		},
	}
	if o.runAsUser > 0 {
		c.values["runAsUser"] = o.runAsUser
	}
	text := header + o.Program + " manifests --helm, which makes this file anew.\n"
	if o.Port > 0 && !o.HasTLS {
		text += "{{- if .Values.hostNetwork }}{{ fail \"hostNetwork would show the pages of --listen to everybody who reaches the node: make the chart with --listen-secure\" }}{{ end }}\n"
	}
	for _, object := range objects {
		if Kind(object) == "Namespace" {
			continue // helm install --create-namespace makes it
		}
		condition := c.addValues(object, isUserRole(object, objects))
		document, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write the %s %s: %w", Kind(object), Name(object), err)
		}
		template := "---\n" + addConditions(addRanges(strings.NewReplacer(c.expressions...).Replace(string(document))))
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
		c.addOptionalValue("serviceAccountAnnotations", ObjectAt(object, "metadata"), "annotations")
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
			c.addOptionalValue(name, spec, name)
		}
		appendRange(spec, "volumes")
		c.addPodValues(object)
		if containers, ok := spec["containers"].([]any); ok && len(containers) > 0 {
			if container, ok := containers[0].(Object); ok {
				c.addContainerValues(container)
			}
		}
	}
	return ""
}

// addPodValues puts placeholders into a Deployment for what is written at its Pods, and for the network of the nodes:
// see [useHostNetwork].
func (c *chart) addPodValues(deployment Object) {
	spec, metadata := PodSpec(deployment), ObjectAt(deployment, "spec", "template", "metadata")
	for value, name := range map[string]string{"podLabels": "labels", "podAnnotations": "annotations"} {
		given := "dict"
		members := ObjectAt(metadata, name)
		for _, key := range slices.Sorted(maps.Keys(members)) {
			given += " " + strconv.Quote(key) + " " + textExpression(fmt.Sprint(members[key]))
		}
		c.addValueNamed(value, metadata, name, "toJson (merge ("+given+") (.Values."+value+" | default dict))")
	}
	c.addOptionalValue("runAsUser", ObjectAt(spec, "securityContext"), "runAsUser")
	spec[when("hostNetwork", "hostNetwork")], spec[when("dnsPolicy", "hostNetwork")] = true, "ClusterFirstWithHostNet"
	for _, port := range containerPorts(spec) {
		if port["name"] == "webhooks" {
			c.addValueNamed("webhookPort", port, "containerPort", webhookPort(port["containerPort"]))
		}
		port[when("hostPort", "hostNetwork")] = port["containerPort"]
	}
	update := ObjectAt(deployment, "spec", "strategy", "rollingUpdate")
	for name, inHost := range map[string]string{"maxSurge": "0", "maxUnavailable": "1"} {
		c.expressions = append(c.expressions, quoted("{helm "+name+"}"),
			fmt.Sprintf("{{ if .Values.hostNetwork }}%s{{ else }}%v{{ end }}", inHost, update[name]))
		update[name] = "{helm " + name + "}"
	}
}

// webhookPort returns the expression of the port of the webhooks, whose default is the port.
func webhookPort(port any) string { return fmt.Sprintf("int (.Values.webhookPort | default %v)", port) }

// when returns the name of a member that an object has only if a value of the chart is set.
func when(member, value string) string { return member + "{when " + value + "}" }

// addConditions replaces the members of [when] in a document by lines with a condition.
func addConditions(document string) string {
	lines := strings.Split(document, "\n")
	for i, line := range lines {
		before, rest, isConditional := strings.Cut(line, "{when ")
		value, after, isClosed := strings.Cut(rest, "}")
		if isConditional && isClosed {
			indentation := line[:len(line)-len(strings.TrimLeft(line, " "))]
			lines[i] = indentation + "{{- if .Values." + value + " }}\n" + before + after + "\n" + indentation + "{{- end }}"
		}
	}
	return strings.Join(lines, "\n")
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
			if port, isPort := strings.CutPrefix(fmt.Sprint(arg), "--webhooks=:"); isPort {
				given += ` (print "--webhooks=:" (` + webhookPort(port) + "))"
				continue
			}
			given += " " + textExpression(fmt.Sprint(arg))
		}
	}
	c.addValue(container, "args", "toJson (concat (list"+given+") (.Values.args | default list))")
	c.addValue(container, "image", `toJson (required "the value image is missing" .Values.image)`)
	c.addValue(container, "resources", "toJson .Values.resources")
	for _, name := range []string{"env", "envFrom", "volumeMounts"} {
		appendRange(container, name)
	}
}

// appendRange adds the items of a value of the chart to a list of an object. Without items the object lacks the list, because a
// key without a value means null, which schemas refuse.
func appendRange(object Object, name string) {
	item := rangeOf(name)
	list, _ := object[name].([]any)
	delete(object, name)
	if len(list) == 0 {
		name = when(name, name)
	}
	object[name] = append(list, item)
}

// rangeOf returns an item of a list that stands for the items of a value of the chart.
func rangeOf(name string) string { return "{helm items of " + name + "}" }

// addRanges replaces each item of rangeOf in a document by the items of the value, in lines with the same indentation.
// The value may be empty.
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

// addOptionalValue does what addValueNamed does, for a member that an object lacks while the value is empty: schemas refuse null.
func (c *chart) addOptionalValue(value string, in Object, name string) {
	conditional := when(name, value)
	in[conditional] = in[name]
	delete(in, name)
	c.addValueNamed(value, in, conditional, "toJson .Values."+value)
}

// quoted returns a placeholder as YAML writes it.
func quoted(placeholder string) string { return "'" + placeholder + "'" }
