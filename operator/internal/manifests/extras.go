package manifests

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Extras are what the user adds to the container of the program.
type Extras struct {
	// env, envFrom, volumes and mounts are lists of the Pod, as decoded JSON.
	env, envFrom, volumes, mounts []any
}

// AddEnv adds an environment variable, such as TZ=Europe/Berlin.
func (e *Extras) AddEnv(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || len(validation.IsEnvVarName(name)) > 0 {
		return errors.New("the variable is not valid: write it as TZ=Europe/Berlin")
	}
	if name == "POD_NAME" || name == "POD_NAMESPACE" {
		return fmt.Errorf("the manifests set %s to that of the Pod: leave it out", name)
	}
	e.env = append(e.env, Object{"name": name, "value": value})
	return nil
}

// AddEnvFrom adds all keys of a Secret or a ConfigMap, such as secret/database, as environment variables.
func (e *Extras) AddEnvFrom(text string) error {
	kind, name, _ := strings.Cut(text, "/")
	field := map[string]string{"secret": "secretRef", "configmap": "configMapRef"}[kind]
	if field == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return errors.New("the source of variables is not valid: write it as secret/NAME or configmap/NAME")
	}
	e.envFrom = append(e.envFrom, Object{field: Object{"name": name}})
	return nil
}

// AddVolume adds a volume with the path of its mount, such as secret/database=/etc/database. An empty folder has no
// name, as in emptydir=/tmp.
func (e *Extras) AddVolume(text string) error {
	source, mountPath, _ := strings.Cut(text, "=")
	kind, name, _ := strings.Cut(source, "/")
	isNamed := len(validation.IsDNS1123Subdomain(name)) == 0
	var volume Object
	switch {
	case kind == "secret" && isNamed:
		volume = Object{"secret": Object{"secretName": name}}
	case kind == "configmap" && isNamed:
		volume = Object{"configMap": Object{"name": name}}
	case kind == "persistentvolumeclaim" && isNamed:
		volume = Object{"persistentVolumeClaim": Object{"claimName": name}}
	case source == "emptydir":
		volume = Object{"emptyDir": Object{}}
	}
	if volume == nil || !path.IsAbs(mountPath) || strings.Contains(mountPath, ":") {
		return errors.New("the volume is not valid: write it as secret/NAME=/PATH, configmap/NAME=/PATH, persistentvolumeclaim/NAME=/PATH or emptydir=/PATH")
	}
	mountPath = path.Clean(mountPath)
	if mountPath == TLSFolder ||
		slices.ContainsFunc(e.mounts, func(m any) bool { return m.(Object)["mountPath"] == mountPath }) {
		return fmt.Errorf("two volumes have the path %s", mountPath)
	}
	volume["name"] = fmt.Sprintf("extra-%d", len(e.volumes))
	mount := Object{"name": volume["name"], "mountPath": mountPath}
	if kind == "secret" || kind == "configmap" {
		mount["readOnly"] = true
	}
	e.volumes, e.mounts = append(e.volumes, volume), append(e.mounts, mount)
	return nil
}

// addTo adds the extras to a Deployment of one container.
func (e *Extras) addTo(deployment Object) {
	spec := PodSpec(deployment)
	container := spec["containers"].([]any)[0].(Object) //nolint:forcetypeassert // deploymentText has one container
	for name, extra := range map[string][]any{"env": e.env, "envFrom": e.envFrom, "volumeMounts": e.mounts} {
		appendTo(container, name, extra)
	}
	appendTo(spec, "volumes", e.volumes)
}

// appendTo appends to a list of an object.
func appendTo(object Object, name string, more []any) {
	if len(more) > 0 {
		list, _ := object[name].([]any)
		object[name] = append(list, more...)
	}
}
