package manifests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Variables and volumes could be added in Go by the author alone, and not by who installs the program.
func TestExtras(t *testing.T) {
	t.Parallel()
	o := &Options{Installation: Installation{Program: "robots", Name: "robots", Namespace: "n"}, Choices: Choices{Replicas: 1, TLSSecret: "web"}, ProbesPort: 8081}
	for flag, add := range map[string]func(string) error{
		"TZ=a=b": o.AddEnv, "secret/database": o.AddEnvFrom, "secret/ca.example=/etc/ca/": o.AddVolume,
	} {
		if err := add(flag); err != nil {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if err := o.AddVolume("emptydir=/tmp"); err != nil {
		t.Error(err)
	}
	objects, err := Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	spec := PodSpec(objects[len(objects)-1])
	container := spec["containers"].([]any)[0].(Object)
	env := container["env"].([]any)
	for what, pair := range map[string][2]any{
		"env":     {Object{"name": "TZ", "value": "a=b"}, env[len(env)-1]},
		"envFrom": {[]any{Object{"secretRef": Object{"name": "database"}}}, container["envFrom"]},
		"volumes": {[]any{
			Object{"name": "tls", "secret": Object{"secretName": "web"}},
			Object{"name": "extra-0", "secret": Object{"secretName": "ca.example"}}, Object{"name": "extra-1", "emptyDir": Object{}},
		}, spec["volumes"]},
		"mounts": {[]any{
			Object{"name": "tls", "mountPath": TLSFolder, "readOnly": true},
			Object{"name": "extra-0", "mountPath": "/etc/ca", "readOnly": true}, Object{"name": "extra-1", "mountPath": "/tmp"},
		}, container["volumeMounts"]},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for flag, test := range map[string]struct {
		add  func(string) error
		want string
	}{
		"TZ": {o.AddEnv, "TZ=Europe/Berlin"}, "a b=c": {o.AddEnv, "TZ=Europe/Berlin"}, "POD_NAME=x": {o.AddEnv, "leave it out"},
		"database": {o.AddEnvFrom, "secret/NAME"}, "secret/": {o.AddEnvFrom, "secret/NAME"},
		"secret/a": {o.AddVolume, "secret/NAME=/PATH"}, "secret=/a": {o.AddVolume, "secret/NAME=/PATH"}, "secret/a=b": {o.AddVolume, "secret/NAME=/PATH"},
		"hostpath/a=/b": {o.AddVolume, "secret/NAME=/PATH"}, "emptydir=/tmp/": {o.AddVolume, "two volumes have the path /tmp"},
		"configmap/a=" + TLSFolder: {o.AddVolume, "two volumes"},
	} {
		if err := test.add(flag); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
