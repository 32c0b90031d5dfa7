package helm

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"

	"github.com/yare-go/yare/lab/helm/internal/site"
	"github.com/yare-go/yare/yaretest"
)

// openAPI is the description of all types of an API server.
type openAPI struct {
	Definitions map[string]map[string]any
}

// strict changes a schema so that it refuses unknown fields, and so that a number can stand where the type of Kubernetes
// allows it.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, isObject := s["properties"].(map[string]any); isObject && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		if s["format"] == "int-or-string" {
			s["type"] = []any{"integer", "string"}
		}
		for _, each := range s {
			strict(each)
		}
	case []any:
		for _, each := range s {
			strict(each)
		}
	}
}

// write writes a file for each kind, with the definitions that the kind needs, under the name by which kubeconform finds
// it.
func (o openAPI) write(t *testing.T, folder string) {
	t.Helper()
	for name, schema := range o.Definitions {
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // such as DeleteOptions
			continue
		}
		kind := kinds[0].(map[string]any)
		file := kind["kind"].(string)
		if group, _, _ := strings.Cut(kind["group"].(string), "."); group != "" {
			file += "-" + group
		}
		needed := make(map[string]any)
		o.collect(name, needed)
		content, err := json.Marshal(map[string]any{"$ref": "#/definitions/" + name, "definitions": needed})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, strings.ToLower(file+"-"+kind["version"].(string)+".json"))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// collect adds a definition, and all that the definition names, to needed.
func (o openAPI) collect(name string, needed map[string]any) {
	if needed[name] != nil {
		return
	}
	needed[name] = o.Definitions[name]
	o.collectNamed(o.Definitions[name], needed)
}

func (o openAPI) collectNamed(schema any, needed map[string]any) {
	switch s := schema.(type) {
	case map[string]any:
		if ref, ok := s["$ref"].(string); ok { // a field can have this name too
			o.collect(strings.TrimPrefix(ref, "#/definitions/"), needed)
		}
		for _, each := range s {
			o.collectNamed(each, needed)
		}
	case []any:
		for _, each := range s {
			o.collectNamed(each, needed)
		}
	}
}

// What is printed, and a chart as it is rendered, satisfies kubeconform in its strict mode, by the schemas of the API server.
func TestManifestsConform(t *testing.T) {
	t.Parallel()
	cluster, folder := yaretest.Shared(t), t.TempDir()
	var api openAPI
	if err := json.Unmarshal([]byte(cluster.Kubectl(t, "", "get", "--raw", "/openapi/v2")), &api); err != nil {
		t.Fatal(err)
	}
	for _, schema := range api.Definitions {
		strict(schema)
	}
	api.write(t, folder)
	conform, err := validator.New([]string{filepath.Join(folder, "{{.ResourceKind}}{{.KindSuffix}}.json")}, validator.Opts{
		Strict:    true,
		SkipKinds: map[string]struct{}{"monitoring.coreos.com/v1/ServiceMonitor": {}}, // it is not a kind of Kubernetes
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, stream string) {
		t.Helper()
		valid := 0
		for _, r := range conform.Validate("stream", io.NopCloser(strings.NewReader(stream))) {
			switch r.Status {
			case validator.Valid:
				valid++
			case validator.Skipped, validator.Empty:
			default:
				t.Errorf("%v\n%.500s", r.Err, r.Resource.Bytes)
			}
		}
		if valid < 10 {
			t.Errorf("%d objects are valid", valid)
		}
	}
	pods := strings.Fields("--network-policy --service-monitor --listen=:8080 --replicas=3 --memory-limit=256Mi " +
		"--cpu-limit=1 --env=TZ=UTC --env-from=secret/database --volume=secret/keys=/keys --volume=emptydir=/cache " +
		"--toleration=spot --node-selector=a=b --run-as-user=1000 --image-pull-secret=key --priority-class=high " +
		`--affinity={"nodeAffinity":{}} --service-account-annotation=a=b`)
	serving := append(slices.Clip(pods), "--webhook-entries", "--webhook-annotation=a=b")
	for example, all := range map[string][][]string{
		"webapp":  {nil, {"--watch-namespace=team-a", "--watch-namespace=team-b"}, pods},
		"cronjob": {nil, serving, {"--webhook-secret=tls"}, {"--host-network", "--webhook-port=10250"}},
	} {
		program, chart := site.Build(t, example), t.TempDir()
		for _, flags := range all {
			t.Run(fmt.Sprint(example, flags), func(t *testing.T) {
				check(t, site.Run(t, program, append([]string{"manifests", "--image", site.Image}, flags...)...))
			})
		}
		site.Run(t, program, "manifests", "--helm", chart, "--image", site.Image)
		for _, values := range []map[string]any{nil, {
			"networkPolicy": true, "serviceMonitor": true, "hostNetwork": true, "runAsUser": 1000,
			"podLabels": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"key": "spot"}},
			"envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "database"}}}, "priorityClassName": "high",
		}} {
			t.Run(fmt.Sprint("the chart of ", example, values), func(t *testing.T) {
				stream, err := renderStream(t, chart, values)
				if err != nil {
					t.Fatal(err)
				}
				check(t, stream)
			})
		}
	}
	for _, wrong := range []string{
		"apiVersion: v1\nkind: Service\nspec: {port: 1}\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: 1}\n",
		"apiVersion: v1\nkind: Unknown\n",
	} {
		r := conform.Validate("stream", io.NopCloser(strings.NewReader(wrong)))[0]
		if r.Status != validator.Invalid && r.Status != validator.Error {
			t.Errorf("%q has the status %v", wrong, r.Status)
		}
	}
}
