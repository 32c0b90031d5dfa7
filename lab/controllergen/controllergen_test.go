package controllergen

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/controllergen/v1"
	"github.com/yare-go/yare/lab/controllergen/v1beta1"
	"golang.org/x/tools/go/packages"
	generator "sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// Types with the markers of kubebuilder and with crd tags give the same definitions, apart from what
// isMeant lists.
func TestDefinitionsAreThoseOfControllerGen(t *testing.T) {
	t.Parallel()
	want, got := generated(t), own(t)
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		theirs, ours := flat(want[name]), flat(got[name])
		paths := maps.Clone(theirs)
		maps.Copy(paths, ours)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if theirs[path] != ours[path] && !isMeant(path, theirs[path], ours[path]) {
				t.Errorf("%s: %s: controller-gen has %s, and yare has %s", name, path, theirs[path], ours[path])
			}
		}
		compared += len(paths)
	}
	t.Logf("%d values compared", compared)
	if compared < 5000 {
		t.Errorf("only %d values were compared", compared)
	}
	if len(got) != 2 || len(want) != 2 {
		t.Errorf("%d definitions of controller-gen, %d of yare", len(want), len(got))
	}
}

// generated returns the definitions that controller-gen makes of the packages, by name.
func generated(t *testing.T) map[string]any {
	t.Helper()
	roots, err := loader.LoadRoots("./v1", "./v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		t.Fatal(err)
	}
	parser := &generator.Parser{
		Collector: &markers.Collector{Registry: registry}, Checker: &loader.TypeChecker{}, GenerateEmbeddedObjectMeta: true,
	}
	generator.AddKnownTypes(parser)
	for _, root := range roots {
		parser.NeedPackage(root)
	}
	all := map[string]any{}
	for _, kind := range generator.FindKubeKinds(parser, generator.FindMetav1(roots)) {
		parser.NeedCRDFor(kind, nil)
		definition := parser.CustomResourceDefinitions[kind]
		generator.FixTopLevelMetadata(definition)
		all[definition.Name] = asAny(t, definition)
	}
	for _, root := range roots {
		for _, err := range root.Errors {
			if err.Kind != packages.TypeError { // it reads only the types that fields have
				t.Error(err)
			}
		}
	}
	return all
}

// own returns the definitions that yare makes of the types, by name.
func own(t *testing.T) map[string]any {
	t.Helper()
	all, err := crd.From(typeOf[v1.Shop](t), typeOf[v1beta1.Shop](t), typeOf[v1.Runner](t))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]any{}
	for _, definition := range all {
		named[definition.Metadata.Name] = asAny(t, definition)
	}
	return named
}

func typeOf[T any, P kube.DefinedObjectOf[T]](t *testing.T) kube.Type {
	t.Helper()
	of, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func asAny(t *testing.T, from any) (v any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// flat returns the values in v by their paths, in JSON. Lists of words are one value.
func flat(v any) map[string]string {
	all := map[string]string{}
	var add func(path string, v any)
	add = func(path string, v any) {
		if object, ok := v.(map[string]any); ok && !strings.HasSuffix(path, "/default") {
			for name, inner := range object {
				add(path+"/"+name, inner)
			}
			return
		}
		list, _ := v.([]any)
		if len(list) > 0 {
			if _, ok := list[0].(map[string]any); ok {
				for i, inner := range list {
					add(path+"/"+strconv.Itoa(i), inner)
				}
				return
			}
		}
		if strings.HasSuffix(path, "/required") {
			slices.SortFunc(list, func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
		}
		text, _ := json.Marshal(v)
		all[path] = string(text)
	}
	add("", v)
	return all
}

// kubernetesField matches the fields of the types whose fields are of k8s.io/api.
var kubernetesField = regexp.MustCompile(`/spec/properties/(template|service|claims|secret|key|object|ingress|policy|env|resources|volumes|pull|tolerate|affinity|choose)/`)

// embeddedMetadata matches the metadata of an object within an object.
var embeddedMetadata = regexp.MustCompile(`/properties/(template|volumeClaimTemplate|claims/items)/properties/metadata/properties/`)

// isMeant reports whether a value may differ.
func isMeant(path, theirs, ours string) bool {
	value, theirsOnly, oursOnly := path[strings.LastIndexByte(path, '/')+1:], ours == "", theirs == ""
	switch {
	case value == "description" || path == "/metadata/creationTimestamp" || strings.HasPrefix(path, "/status/"):
		return true
	case value == "x-kubernetes-list-type" && theirs == `"atomic"` || value == "x-kubernetes-map-type" && theirs == `"granular"`:
		return theirsOnly // it is the default of a server
	case value == "pattern" && strings.Contains(ours, "numkMGTPE"), value == "pattern" && strings.Contains(ours, "µs"):
		return true // quantities and durations: yare accepts nothing that a decoder refuses
	case value == "minimum" && ours == "-2147483648", value == "maximum" && ours == "2147483647":
		return oursOnly // an intstr.IntOrString: its Go type has an int32
	case value == "pattern" && strings.Contains(ours, "[0-9]{6}(Z"):
		return oursOnly // a metav1.MicroTime
	case embeddedMetadata.MatchString(path):
		return true // yare has generateName too
	case strings.Contains(path, "/properties/highPort/"):
		return true // controller-gen adds the markers of a field to those of its type by allOf, and both hold
	case !kubernetesField.MatchString(path):
		return false
	case value == "required":
		return true // yare does not see the comments of k8s.io/api, and has its own rule
	case slices.Contains([]string{"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "enum", "pattern", "format"}, value):
		return theirsOnly // neither does it see limits, which are new in these comments
	case value == "x-kubernetes-map-type":
		// controller-gen takes it from the LocalObjectReference in these structs, and an API server does not.
		return theirsOnly && regexp.MustCompile(`/(configMapRef|secretRef|configMap|secret)/`+value).MatchString(path)
	case value == "default":
		// controller-gen leaves out defaults that name a constant, and an API server does not.
		return oursOnly && strings.Contains(path, "/azureDisk/")
	}
	return false
}
