// Package manifests renders the objects that install a program in a cluster, and writes them: as
// one stream, as a base of Kustomize, or as a chart of Helm.
//
// The objects are decoded JSON, made from YAML text. The types of k8s.io/api would cost a program
// megabytes if nothing else of it used them.
package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// Object is an object of Kubernetes as decoded JSON. Its integers are int64.
type Object = map[string]any

// Options describe an installation of a program.
type Options struct {
	Installation
	Choices
	// Version is the version of the program.
	Version string
	// OwnNamespace is true if the program is the only program in its namespace. The namespace then gets the
	// restricted Pod security standard.
	OwnNamespace bool
	// Args are the arguments of the program.
	Args []string
	// Port is where the program serves its metrics, over TLS if HasTLS. It is 0 if the program serves none.
	Port   int
	HasTLS bool
	// ProbesPort is where the program serves its health for the kubelet.
	ProbesPort int
	// GraceSeconds is longer than the program needs to end.
	GraceSeconds int
	Definitions  []*crd.CustomResourceDefinition
	// Roles encode as Roles and ClusterRoles. Each is bound to the ServiceAccount.
	Roles []any
	// IsCalled is true if API servers call the program.
	IsCalled bool
	// Edits change the objects. The last object is the Deployment.
	Edits []func(objects []Object) ([]Object, error)
}

// Choices are the options that the user chooses.
type Choices struct {
	Image       string
	PullSecrets []string
	Replicas    int
	// MemoryLimit and CPULimit are empty for none.
	MemoryLimit, CPULimit         string
	Architectures                 []string
	NetworkPolicy, ServiceMonitor bool
	// PriorityClass is the class of the Pods, or empty.
	PriorityClass string
	// AccountAnnotations are those of the ServiceAccount, by which clouds give it an identity.
	AccountAnnotations map[string]string
	// PolicyLabels are the labels of the namespaces that the NetworkPolicy lets in. Without any it lets in all.
	PolicyLabels map[string]string
	// TLSSecret is the Secret with the certificate of the program, or empty.
	TLSSecret string
	// MemoryRequest and CPURequest are empty for the defaults.
	MemoryRequest, CPURequest string
	Placement
	Extras
}

// TLSFolder is where the container of the program has the files of the Secret of [Choices].
const TLSFolder = "/etc/yare/tls"

// InstallationVariable is the environment variable of a program with webhooks that has the name and the namespace of
// its objects, such as webapp.team-a. The permissions and the configurations of the program contain both.
const InstallationVariable = "YARE_INSTALLATION"

// isMonitored reports whether Prometheus can read the metrics without showing its token to somebody else.
func (o *Options) isMonitored() bool { return o.Port > 0 && (!o.HasTLS || o.TLSSecret != "") }

const (
	// defaultMemory is the request for memory. In the measurement of lab/bench/RESULTS.md, WebApp has 15 MB with
	// one object and at most 41 MB with 10,000.
	defaultMemory = "64Mi"
	// defaultCPU is the request for processor time: WebApp takes 7 % of a processor for 500 updates a second.
	defaultCPU = "50m"
)

// Objects returns the objects in the order in which they are to be applied.
func Objects(o *Options) ([]Object, error) {
	r := &renderer{replacer: strings.NewReplacer(o.replacements()...)}
	for _, definition := range o.Definitions {
		r.addValue(definition)
		for _, role := range userRoles(definition) {
			r.addValue(role)
		}
	}
	r.addNamespace(o)
	r.addAccount(o)
	r.addService(o)
	r.addDeployment(o)
	objects, err := r.objects, errors.Join(r.errs...)
	for _, edit := range o.Edits {
		if err == nil {
			objects, err = edit(objects)
		}
	}
	if o.HostNetwork && err == nil {
		useHostNetwork(objects[len(objects)-1])
	}
	return objects, err
}

// addNamespace adds the Namespace. If the installation has the Namespace for itself, its labels ask for the Pod Security
// Standard "restricted", or for "privileged" with the network of the nodes, which the other standards refuse.
func (r *renderer) addNamespace(o *Options) {
	r.add(namespaceText)
	if o.OwnNamespace {
		labels, standard := Object{"pod-security.kubernetes.io/enforce-version": "latest"}, "restricted"
		if o.HostNetwork {
			standard = "privileged"
		}
		for _, mode := range []string{"enforce", "warn", "audit"} {
			labels["pod-security.kubernetes.io/"+mode] = standard
		}
		ObjectAt(r.last(), "metadata")["labels"] = labels
	}
}

// addAccount adds the ServiceAccount, with its roles and their bindings.
func (r *renderer) addAccount(o *Options) {
	r.add(accountText)
	if len(o.AccountAnnotations) > 0 {
		annotations := Object{}
		for key, value := range o.AccountAnnotations {
			annotations[key] = value
		}
		ObjectAt(r.last(), "metadata")["annotations"] = annotations
	}
	for _, role := range o.Roles {
		r.addValue(role)
		bound := r.last()
		r.add(bindingText)
		bindTo(bound, r.last())
	}
}

// addService adds the Service, the role of the readers of its pages, the budget of its Pods, its NetworkPolicy, and
// what Prometheus needs to read its metrics.
func (r *renderer) addService(o *Options) {
	if o.Port > 0 || o.IsCalled {
		r.add(serviceText)
	}
	if o.HasTLS {
		r.add(readerRoleText)
	}
	if o.Replicas > 1 {
		r.add(budgetText)
	}
	if o.NetworkPolicy {
		r.add(networkPolicyText)
	}
	if o.ServiceMonitor && o.isMonitored() {
		if o.HasTLS {
			r.add(readerAccountText)
			r.add(readerBindingText)
			r.add(readerTokenText)
		}
		r.add(serviceMonitorText)
	}
}

// addDeployment adds the Deployment.
func (r *renderer) addDeployment(o *Options) {
	r.add(deploymentText)
	if o.IsCalled {
		if containers, _ := PodSpec(r.last())["containers"].([]any); len(containers) > 0 {
			container := containers[0].(Object)
			env, _ := container["env"].([]any)
			container["env"] = append(env, Object{"name": InstallationVariable, "value": ClusterName(o.Name, o.Namespace)})
		}
	}
	if o.PriorityClass != "" {
		PodSpec(r.last())["priorityClassName"] = o.PriorityClass
	}
	if o.TLSSecret != "" {
		PodSpec(r.last())["volumes"] = []any{Object{"name": "tls", "secret": Object{"secretName": o.TLSSecret}}}
	}
	o.Extras.addTo(r.last())
	o.Placement.addTo(r.last())
	if len(o.PullSecrets) > 0 {
		var secrets []any
		for _, name := range o.PullSecrets {
			secrets = append(secrets, Object{"name": name})
		}
		PodSpec(r.last())["imagePullSecrets"] = secrets
	}
}

// bindTo completes the binding of a role. Both have the same name and namespace.
func bindTo(role, binding Object) {
	binding["kind"] = Kind(role) + "Binding"
	binding["metadata"] = maps.Clone(ObjectAt(role, "metadata"))
	ref := ObjectAt(binding, "roleRef")
	ref["kind"], ref["name"] = Kind(role), Name(role)
}

// replacements returns pairs of a word in the texts and the JSON that takes its place, such as @name@ and "webapp".
func (o *Options) replacements() []string {
	requests := Object{"cpu": cmp.Or(o.CPURequest, defaultCPU), "memory": cmp.Or(o.MemoryRequest, defaultMemory)}
	limits := Object{}
	if o.MemoryLimit != "" {
		limits["memory"] = o.MemoryLimit
		// A request must not be higher than the limit.
		if limit, err := ParseMemory(o.MemoryLimit); err == nil && limit < 64<<20 && o.MemoryRequest == "" {
			requests["memory"] = o.MemoryLimit
		}
	}
	if o.CPULimit != "" {
		limits["cpu"] = o.CPULimit
	}
	resources := Object{"requests": requests}
	if len(limits) > 0 {
		resources["limits"] = limits
	}
	reader := o.Name + "-metrics-reader"
	endpoint := Object{"port": "metrics"}
	if o.HasTLS {
		endpoint["scheme"] = "https"
		endpoint["authorization"] = Object{"credentials": Object{"name": reader, "key": "token"}}
		endpoint["tlsConfig"] = Object{
			"ca":         Object{"secret": Object{"name": o.TLSSecret, "key": "ca.crt"}},
			"serverName": o.Name + "." + o.Namespace + ".svc",
		}
	}
	ports, ingress := []Object{{"name": "probes", "containerPort": o.ProbesPort, "protocol": "TCP"}}, []Object{}
	if o.Port > 0 {
		ports = append(ports, Object{"name": "metrics", "containerPort": o.Port, "protocol": "TCP"})
		selector := Object{}
		if len(o.PolicyLabels) > 0 {
			selector["matchLabels"] = o.PolicyLabels
		}
		ingress = append(ingress, Object{
			"from": []Object{{"namespaceSelector": selector}}, "ports": []Object{{"port": "metrics", "protocol": "TCP"}},
		})
	}
	mounts := []Object{}
	if o.TLSSecret != "" {
		mounts = append(mounts, Object{"name": "tls", "mountPath": TLSFolder, "readOnly": true})
	}
	values := []any{
		"name", o.Name, "namespace", o.Namespace, "selector", o.podLabels(), "port", o.Port, "ports", ports, "ingress",
		ingress, "mounts", mounts, "endpoint", endpoint,
		"reader", reader, "reader role", reader + "." + o.Namespace,
		"replicas", o.Replicas, "grace", o.GraceSeconds, "architectures", o.Architectures, "image", o.Image, "args", o.Args,
		"resources", resources,
	}
	pairs := make([]string, len(values))
	for i, value := range values {
		if i%2 == 0 {
			pairs[i] = "@" + value.(string) + "@"
		} else if text, err := kube.Marshal(value); err == nil { // strings, numbers, lists and maps have no errors
			pairs[i] = string(text)
		}
	}
	return pairs
}

// Kind returns the kind of an object.
func Kind(object Object) string {
	kind, _ := object["kind"].(string)
	return kind
}

// Name returns the name of an object. It adds empty metadata to an object without metadata: see [ObjectAt].
func Name(object Object) string {
	name, _ := ObjectAt(object, "metadata")["name"].(string)
	return name
}

// ObjectAt returns the object at a path in an object. It adds the objects that are missing on the path, also if the
// caller only reads the result.
//
//go:noinline
func ObjectAt(object Object, path ...string) Object {
	for _, name := range path {
		inner, ok := object[name].(Object)
		if !ok {
			inner = Object{}
			object[name] = inner
		}
		object = inner
	}
	return object
}

// PodSpec returns the spec of the Pods of a Deployment.
func PodSpec(deployment Object) Object { return ObjectAt(deployment, "spec", "template", "spec") }

// renderer collects objects.
type renderer struct {
	replacer *strings.Replacer
	objects  []Object
	errs     []error
}

// last returns the object that was added last.
func (r *renderer) last() Object { return r.objects[len(r.objects)-1] }

// add adds the object of a text.
func (r *renderer) add(text string) {
	content, err := yaml.YAMLToJSON([]byte(r.replacer.Replace(text)))
	r.addJSON(content, err)
}

// addValue adds what encodes as an object.
func (r *renderer) addValue(value any) {
	content, err := kube.Marshal(value)
	r.addJSON(content, err)
}

// addJSON adds the object of a JSON text, or the error of the text.
func (r *renderer) addJSON(content []byte, err error) {
	object := Object{}
	if err == nil {
		err = kube.Unmarshal(content, &object)
	}
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("render an object: %w", err))
	}
	r.objects = append(r.objects, object)
}

// ParseMemory returns an amount of memory such as 128Mi, in bytes.
func ParseMemory(text string) (int64, error) {
	units := map[string]int64{
		"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	}
	digits := strings.TrimRight(text, "KMGTki")
	bytes, isUnit := units[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !isUnit || n <= 0 || n > math.MaxInt64/bytes {
		return 0, fmt.Errorf("%q is no amount of memory: write it as 128Mi or 1Gi", text)
	}
	return n * bytes, nil
}
