package operatortest

import (
	"fmt"
	"strings"
)

// Tamper is what somebody does to the children of an object, with kubectl.
type Tamper struct {
	Name string
	args []string
	// stdin is what kubectl reads.
	stdin string
}

// Kubectl is a Tamper; in its arguments, %s is the name of the object.
func Kubectl(name string, args ...string) Tamper { return Tamper{Name: name, args: args} }

// of are the arguments and the standard input, for an object of that name.
func (m Tamper) of(name string) (args []string, stdin string) {
	for _, arg := range m.args {
		args = append(args, strings.ReplaceAll(arg, "%s", name))
	}
	return args, strings.ReplaceAll(m.stdin, "%s", name)
}

// Tampers are what somebody may do to a Deployment that is called like the object with a
// suffix; in the name of its container, %s is the name of the object.
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

// LabelTampers are what somebody may do to the labels of a Deployment that is called like
// the object, and has a label app.
func LabelTampers() []Tamper {
	return []Tamper{
		Kubectl("another label", "label", "deployment/%s", "--overwrite", "app=other"),
		Kubectl("no label", "label", "deployment/%s", "app-"),
	}
}
