package manifests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Placement is where the Pods run, as whom, and what is written at them.
type Placement struct {
	// HostNetwork is true if the Pods have the network of their nodes.
	HostNetwork bool
	// PodLabels and PodAnnotations are further ones of the Pods.
	PodLabels, PodAnnotations map[string]string
	// runAsUser is the user of the container, or 0 for that of the image.
	runAsUser int64
	// nodeSelector, tolerations and affinity are parts of the Pod, as decoded JSON.
	nodeSelector Object
	tolerations  []any
	affinity     Object
}

// SetRunAsUser sets the user of the container, such as 65532.
func (p *Placement) SetRunAsUser(text string) error {
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil || id < 1 {
		return errors.New("it is not the number of a user other than root: write it as 65532")
	}
	p.runAsUser = id
	return nil
}

// AddNodeSelector adds a label that the nodes of the Pods must have, such as kubernetes.io/os=linux.
func (p *Placement) AddNodeSelector(text string) error {
	if p.nodeSelector == nil {
		p.nodeSelector = Object{}
	}
	return addLabelTo(text, func(key, value string) { p.nodeSelector[key] = value })
}

// AddPodLabel adds a label of the Pods, such as team=platform.
func (p *Placement) AddPodLabel(text string) error {
	if p.PodLabels == nil {
		p.PodLabels = make(map[string]string)
	}
	return addLabelTo(text, func(key, value string) { p.PodLabels[key] = value })
}

// addLabelTo calls add with the key and the value of a label of the Pods or of their nodes.
func addLabelTo(text string, add func(key, value string)) error {
	key, value, err := ParseLabel(text, "example.com/team=platform")
	if err != nil {
		return err
	}
	if key == LabelName || key == LabelInstance {
		return fmt.Errorf("the manifests set the label %s: leave it out", key)
	}
	add(key, value)
	return nil
}

// ParseLabel returns the key and the value of a text such as team=platform. The error has an example of a text.
func ParseLabel(text, example string) (key, value string, err error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
		return "", "", errors.New("the label is not valid: write it as " + example)
	}
	return key, value, nil
}

// AddToleration adds a toleration, as kubectl taint writes a taint: dedicated=operators:NoSchedule, dedicated:NoExecute,
// or dedicated for each effect.
func (p *Placement) AddToleration(text string) error {
	keyValue, effect, hasEffect := strings.Cut(text, ":")
	key, value, hasValue := strings.Cut(keyValue, "=")
	effects := []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 ||
		hasEffect && !slices.Contains(effects, effect) {
		return errors.New("the toleration is not valid: write it as KEY=VALUE:EFFECT, KEY:EFFECT or KEY, with the effect NoSchedule, PreferNoSchedule or NoExecute")
	}
	toleration := Object{"key": key, "operator": "Exists"}
	if hasValue {
		toleration["operator"], toleration["value"] = "Equal", value
	}
	if hasEffect {
		toleration["effect"] = effect
	}
	p.tolerations = append(p.tolerations, toleration)
	return nil
}

// SetAffinity sets the affinity from YAML or JSON, such as {podAntiAffinity: {…}}. The manifests have a nodeAffinity for
// the architectures of the image, which a nodeAffinity here replaces.
func (p *Placement) SetAffinity(text string) error {
	affinity := Object{}
	if err := yaml.UnmarshalStrict([]byte(text), &affinity); err != nil || len(affinity) == 0 {
		return errors.New("it is no affinity as YAML or JSON, such as {podAntiAffinity: {…}}")
	}
	for name := range affinity {
		if !slices.Contains([]string{"nodeAffinity", "podAffinity", "podAntiAffinity"}, name) {
			return fmt.Errorf("an affinity has no field %q: it has nodeAffinity, podAffinity and podAntiAffinity", name)
		}
	}
	p.affinity = affinity
	return nil
}

// addTo adds the placement to a Deployment, but for the network of the nodes: see [useHostNetwork].
func (p *Placement) addTo(deployment Object) {
	spec, metadata := PodSpec(deployment), ObjectAt(deployment, "spec", "template", "metadata")
	for key, value := range p.PodLabels {
		ObjectAt(metadata, "labels")[key] = value
	}
	for key, value := range p.PodAnnotations {
		ObjectAt(metadata, "annotations")[key] = value
	}
	if p.runAsUser > 0 {
		ObjectAt(spec, "securityContext")["runAsUser"] = p.runAsUser
	}
	maps.Copy(ObjectAt(spec, "nodeSelector"), p.nodeSelector)
	maps.Copy(ObjectAt(spec, "affinity"), p.affinity)
	appendTo(spec, "tolerations", p.tolerations)
}

// useHostNetwork gives the Pods of a Deployment the network of their nodes, for API servers that reach nodes only. Each
// port is one of the node then, so that a node has one Pod at most: an update ends a Pod before it starts the next one.
func useHostNetwork(deployment Object) {
	spec := PodSpec(deployment)
	spec["hostNetwork"], spec["dnsPolicy"] = true, "ClusterFirstWithHostNet"
	for _, port := range containerPorts(spec) {
		port["hostPort"] = port["containerPort"]
	}
	update := ObjectAt(deployment, "spec", "strategy", "rollingUpdate")
	update["maxSurge"], update["maxUnavailable"] = int64(0), int64(1)
}

// containerPorts returns the ports of the containers of a Pod.
func containerPorts(spec Object) (ports []Object) {
	containers, _ := spec["containers"].([]any)
	for _, container := range containers {
		c, _ := container.(Object)
		list, _ := c["ports"].([]any)
		for _, port := range list {
			if p, ok := port.(Object); ok {
				ports = append(ports, p)
			}
		}
	}
	return ports
}
