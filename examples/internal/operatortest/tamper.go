package operatortest

import (
	"fmt"
	"strings"
)

// Tamper is a change of an object's children by kubectl.
type Tamper struct {
	Name string
	args []string
	// stdin is the standard input of kubectl.
	stdin string
}

// Kubectl returns a Tamper that runs kubectl. In the arguments, %s is the name of the object.
func Kubectl(name string, args ...string) Tamper { return Tamper{Name: name, args: args} }

// arguments returns the arguments and the standard input for an object of that name.
func (m Tamper) arguments(name string) (args []string, stdin string) {
	for _, arg := range m.args {
		args = append(args, strings.ReplaceAll(arg, "%s", name))
	}
	return args, strings.ReplaceAll(m.stdin, "%s", name)
}

// Tampers returns changes of a Deployment whose name is the object's name and a suffix. In the name
// of its container, %s is the name of the object.
func Tampers(suffix, container string) []Tamper {
	deployment := "deployment/%s" + suffix
	force := Kubectl("another field manager with force", "apply", "--server-side", "--force-conflicts", "--field-manager=somebody", "-f", "-")
	force.stdin = fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %%s%s}
spec:
  replicas: 4
  selector: {matchLabels: {app: %%s}}
  template:
    metadata: {labels: {app: %%s}}
    spec: {containers: [{name: %s, image: "nginx:evil"}]}
`, suffix, container)
	return []Tamper{
		Kubectl("kubectl scale", "scale", deployment, "--replicas=5"),
		Kubectl("kubectl scale to zero", "scale", deployment, "--replicas=0"),
		Kubectl("another image", "set", "image", deployment, "*=nginx:evil"),
		Kubectl("no owner", "patch", deployment, "--type=merge", `-p={"metadata":{"ownerReferences":null}}`),
		force,
	}
}

// LabelTampers returns changes of the label app of a Deployment that has the object's name.
func LabelTampers() []Tamper {
	return []Tamper{
		Kubectl("another label", "label", "deployment/%s", "--overwrite", "app=other"),
		Kubectl("no label", "label", "deployment/%s", "app-"),
	}
}
