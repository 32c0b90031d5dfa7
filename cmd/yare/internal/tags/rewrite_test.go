package tags

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rewriteText writes files into a folder, and returns the text and the notes for the first one.
func rewriteText(t *testing.T, text string, others ...string) (string, []string) {
	t.Helper()
	folder := t.TempDir()
	for i, text := range append([]string{text}, others...) {
		if err := os.WriteFile(filepath.Join(folder, string(rune('a'+i))+".go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "a.go")
	got, notes, err := Rewrite(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, got, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, _, err := Rewrite(path); err != nil || string(again) != string(got) {
		t.Errorf("a second run changes the file: %v\n%s", err, cmp.Diff(string(got), string(again)))
	}
	var all []string
	for _, n := range notes {
		all = append(all, strings.TrimPrefix(n.Position, folder+string(filepath.Separator))+": "+n.Text)
	}
	return string(got), all
}

func TestFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// field has its markers before it. want is the field afterwards.
		field, want string
		note        string
	}{
		"bounds":    {"// +kubebuilder:validation:ExclusiveMinimum=true\n// +kubebuilder:validation:Minimum=0\n\tA int32 `json:\"a\"`", "A int32 `json:\"a\" crd:\"minimum=0,exclusiveMinimum\"`", ""},
		"not bound": {"// +kubebuilder:validation:ExclusiveMaximum=false\n\tA int32 `json:\"a\"`", "A int32 `json:\"a\"`", ""},
		"texts": {
			"// +kubebuilder:validation:MaxLength=9\n// +kubebuilder:validation:Pattern=`^[a-z]{1,2}\\.x'$`\n\tA string `json:\"a\" yaml:\"a\"`",
			"A string `json:\"a\" yaml:\"a\" crd:\"maxLength=9,pattern='^[a-z]{1,2}\\\\.x''$'\"`", "",
		},
		"backquote":                     {"// +kubebuilder:validation:Pattern=\"^`$\"\n\tA string `json:\"a\"`", "A string \"json:\\\"a\\\" crd:\\\"pattern=^`$\\\"\"", ""},
		"enum":                          {"// +kubebuilder:validation:Enum=A;\"B\";c\n\tA string `json:\"a\"`", "A string `json:\"a\" crd:\"enum=A|B|c\"`", ""},
		"enum in braces":                {"// +kubebuilder:validation:Enum={A,B}\n\tA string `json:\"a\"`", "A string `json:\"a\" crd:\"enum=A|B\"`", ""},
		"enum with a bar":               {"// +kubebuilder:validation:Enum=A|B;C\n\tA string `json:\"a\"`", "// +kubebuilder:validation:Enum=A|B;C\n\tA string `json:\"a\"`", "separates the values by |"},
		"items":                         {"// +kubebuilder:validation:items:MinLength=1\n// +kubebuilder:validation:items:Enum=a;b\n\tA []string `json:\"a,omitempty\"`", "A []string `json:\"a,omitempty\" crd:\"items.minLength=1,items.enum=a|b\"`", ""},
		"list":                          {"// +listType=map\n// +listMapKey=x\n// +listMapKey=y\n\tA []B `json:\"a,omitempty\"`", "A []B `json:\"a,omitempty\" crd:\"listType=map,listMapKey=x,listMapKey=y\"`", ""},
		"rule":                          {"// +kubebuilder:validation:XValidation:rule=\"self == oldSelf || self != 'x'\",message=\"it's, final\"\n\tA string `json:\"a\"`", "A string `json:\"a\" crd:\"rule='self == oldSelf || self != ''x''',message='it''s, final'\"`", ""},
		"rule by message first":         {"// +kubebuilder:validation:XValidation:message=`m`,rule=`self != \"x\"`\n\tA string `json:\"a\"`", "A string `json:\"a\" crd:\"rule=self != \\\"x\\\",message=m\"`", ""},
		"rule with a reason":            {"// +kubebuilder:validation:XValidation:rule=\"self > 0\",reason=FieldValueInvalid\n\tA int `json:\"a\"`", "// +kubebuilder:validation:XValidation:reason=\"FieldValueInvalid\"\n\tA int `json:\"a\" crd:\"rule=self > 0\"`", "a rule has only a text and a message"},
		"immutable":                     {"// +k8s:immutable\n\tA int `json:\"a\"`", "A int `json:\"a\" crd:\"rule=self == oldSelf,message=field is immutable\"`", ""},
		"defaults":                      {"// +kubebuilder:default:=\"x\"\n\tA string `json:\"a,omitempty\"`", "A string `json:\"a,omitempty\" crd:\"default=x\"`", ""},
		"default object":                {"// +kubebuilder:default={a: \"b\", c: {d: 1,e:\"f\"}}\n\tA B `json:\"a\"`", "A B `json:\"a\" crd:\"default='{\\\"a\\\":\\\"b\\\",\\\"c\\\":{\\\"d\\\":1,\\\"e\\\":\\\"f\\\"}}'\"`", ""},
		"default list":                  {"// +kubebuilder:default={{x:1},{x: true}}\n\tA []B `json:\"a\"`", "A []B `json:\"a\" crd:\"default='[{\\\"x\\\":1},{\\\"x\\\":true}]'\"`", ""},
		"empty list":                    {"// +kubebuilder:default={}\n\tA []B `json:\"a\"`", "A []B `json:\"a\" crd:\"default=[]\"`", ""},
		"default of a constant":         {"// +default=ref(X)\n\tA string `json:\"a,omitempty\"`", "// +default=ref(X)\n\tA string `json:\"a,omitempty\"`", "write the value of the constant"},
		"default without a brace":       {"// +kubebuilder:default={a: 1\n\tA B `json:\"a\"`", "// +kubebuilder:default={a: 1\n\tA B `json:\"a\"`", "a brace is missing"},
		"types":                         {"// +kubebuilder:validation:Type=string\n// +kubebuilder:validation:Format=date-time\n\tA B `json:\"a\"`", "A B `json:\"a\" crd:\"type=string,format=date-time\"`", ""},
		"any":                           {"// +kubebuilder:validation:Schemaless\n// +kubebuilder:pruning:PreserveUnknownFields\n\tA B `json:\"a\"`", "A B `json:\"a\" crd:\"type=any,preserveUnknownFields\"`", ""},
		"any object":                    {"// +kubebuilder:validation:Schemaless\n// +kubebuilder:validation:Type=object\n\tA B `json:\"a\"`", "A B `json:\"a\" crd:\"type=object\"`", ""},
		"embedded resource":             {"// +kubebuilder:validation:EmbeddedResource\n// +nullable\n\tA *B `json:\"a,omitempty\"`", "A *B `json:\"a,omitempty\" crd:\"embeddedResource,nullable\"`", ""},
		"optional by yare too":          {"// +optional\n\tA *B `json:\"a,omitempty\"`", "A *B `json:\"a,omitempty\"`", ""},
		"optional":                      {"// +optional\n\tA string `json:\"a\"`", "A string `json:\"a\" crd:\"optional\"`", ""},
		"required":                      {"// +required\n\tA string `json:\"a,omitempty\"`", "A string `json:\"a,omitempty\" crd:\"required\"`", ""},
		"required by controller-gen":    {"// +kubebuilder:validation:MinItems=1\n\tA []string `json:\"a\"`", "A []string `json:\"a\" crd:\"required,minItems=1\"`", ""},
		"required of a named list":      {"// +kubebuilder:validation:MinItems=1\n\tA List `json:\"a\"`", "A List `json:\"a\" crd:\"required,minItems=1\"`", ""},
		"required with a default":       {"// +required\n// +kubebuilder:default=x\n\tA string `json:\"a,omitempty\"`", "A string `json:\"a,omitempty\" crd:\"default=x\"`", ""},
		"a tag before":                  {"// +kubebuilder:validation:Minimum=1\n// +kubebuilder:validation:Maximum=3\n\tA int `json:\"a\" crd:\"column,maximum=2\"`", "A int `json:\"a\" crd:\"column,maximum=2,minimum=1\"`", ""},
		"a marker beside text":          {"// A is a letter.\n\t//\n\t// +kubebuilder:validation:Minimum=1\n\t// It is small.\n\tA int `json:\"a\"`", "// A is a letter.\n\t//\n\t// It is small.\n\tA int `json:\"a\" crd:\"minimum=1\"`", ""},
		"an empty line goes":            {"// A is a letter.\n\t//\n\t// +kubebuilder:validation:Minimum=1\n\tA int `json:\"a\"`", "// A is a letter.\n\tA int `json:\"a\" crd:\"minimum=1\"`", ""},
		"a marker above an empty line":  {"// +kubebuilder:validation:Minimum=1\n\n\t// A is a letter.\n\tA int `json:\"a\"`", "// A is a letter.\n\tA int `json:\"a\" crd:\"minimum=1\"`", ""},
		"markers for others":            {"// +optional\n\t// +patchStrategy=merge\n\tA []B `json:\"a,omitempty\"`", "// +patchStrategy=merge\n\tA []B `json:\"a,omitempty\"`", ""},
		"no counterpart":                {"// +kubebuilder:validation:UniqueItems=true\n\tA []string `json:\"a,omitempty\"`", "// +kubebuilder:validation:UniqueItems=true\n\tA []string `json:\"a,omitempty\"`", `crd:"listType=set"`},
		"unknown":                       {"// +kubebuilder:new=1\n\tA string `json:\"a\"`", "// +kubebuilder:new=1\n\tA string `json:\"a\"`", "does not know it"},
		"embedded":                      {"// +kubebuilder:validation:MinProperties=1\n\tB `json:\",inline\"`", "// +kubebuilder:validation:MinProperties=1\n\tB `json:\",inline\"`", "no name in JSON"},
		"in a struct without a name":    {"A struct {\n\t\t// +kubebuilder:validation:Minimum=1\n\t\tC int `json:\"c\"`\n\t} `json:\"a\"`", "A struct {\n\t\tC int `json:\"c\" crd:\"minimum=1\"`\n\t} `json:\"a\"`", ""},
		"a trailing comment is kept":    {"X int `json:\"x\"` // +kubebuilder:validation:Minimum=7\n\t// +kubebuilder:validation:Minimum=1\n\tA int `json:\"a\"`", "X int `json:\"x\"` // +kubebuilder:validation:Minimum=7\n\tA int `json:\"a\" crd:\"minimum=1\"`", ""},
		"limits by Kubernetes' markers": {"// +k8s:required\n\t// +k8s:maxItems=3 # few\n\tA []string `json:\"a,omitempty\"`", "A []string `json:\"a,omitempty\" crd:\"required,maxItems=3\"`", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const end = "\n}\n\ntype B struct{}\n\ntype List []string\n"
			got, notes := rewriteText(t, "package v1\n\n// S is a struct.\ntype S struct {\n\t"+test.field+end)
			_, got, _ = strings.Cut(got, "type S struct {\n")
			got = strings.TrimLeft(got, "\n\t")
			// The alignment of gofmt says nothing.
			got = regexp.MustCompile(` +`).ReplaceAllString(got, " ")
			if got != test.want+end {
				t.Errorf("the field is\n\t%s\nnot\n\t%s", got, test.want)
			}
			if all := strings.Join(notes, "\n"); (test.note == "") != (all == "") || !strings.Contains(all, test.note) {
				t.Errorf("the notes are %q, and should have %q", all, test.note)
			}
		})
	}
}

// A type gets methods for its markers, and a kind gets a Definition.
func TestTypes(t *testing.T) {
	t.Parallel()
	const before = `package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mode is a mode.
// +kubebuilder:validation:Enum=A;B
type Mode string

// Other is declared by Mode.
type Other Mode

// Way is a union.
//
// +kubebuilder:validation:ExactlyOneOf=a;b
// +kubebuilder:validation:XValidation:rule="has(self.a)",message="no \"a\""
type Way struct {
	A *string ` + "`json:\"a,omitempty\"`" + `
	B *string ` + "`json:\"b,omitempty\"`" + `
}

// Kept has a method already.
// +kubebuilder:validation:MinLength=1
type Kept string

func (Kept) CRDTag() string { return "minLength=1" }

type AppSpec struct {
	Way Way ` + "`json:\"way\"`" + `
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=a;ap,path=apps,singular=application
// +kubebuilder:subresource:scale:specpath=.spec.n,statuspath=.status.n,selectorpath=.status.s
// +kubebuilder:storageversion
// +kubebuilder:deprecatedversion:warning="use v2"
// +kubebuilder:selectablefield:JSONPath=".spec.way.a"
// +kubebuilder:printcolumn:name="A",type=string,JSONPath=` + "`.spec.way.a`" + `,description="an A",priority=2
// +kubebuilder:metadata:annotations="x=y"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'x'"

// App is an application.
type App struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `

	Spec   AppSpec   ` + "`json:\"spec,omitempty\"`" + `
	Status AppStatus ` + "`json:\"status,omitempty\"`" + `
}

type AppStatus struct{}

// +kubebuilder:object:root=true

// AppList is a list.
type AppList struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	metav1.ListMeta ` + "`json:\"metadata,omitempty\"`" + `
	Items           []App ` + "`json:\"items\"`" + `
}
`
	got, notes := rewriteText(t, before, "// Package v1 has types.\n// +groupName=apps.example.com\npackage v1\n")
	for _, want := range []string{
		"\"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n\t\"github.com/yare-go/yare/kube\"\n)",
		"// Mode is a mode.\ntype Mode string\n\n// CRDTag returns the crd tag of each Mode.\nfunc (Mode) CRDTag() string { return \"enum=A|B\" }\n",
		"func (Other) CRDTag() string { return new(Mode).CRDTag() }\n",
		"// Way is a union.\ntype Way struct {",
		"func (Way) CRDTag() string { return \"exactlyOneOf=a|b\" }\n",
		"func (Way) Rules() []kube.Rule {\n\treturn []kube.Rule{\n\t\t{Rule: \"has(self.a)\", Message: `no \"a\"`},\n\t}\n}\n",
		"// +kubebuilder:validation:MinLength=1\ntype Kept string\n",
		`
// App is an application.
type App struct {`,
		`
// Definition returns the definition of the kind App.
func (App) Definition() kube.Definition {
	return kube.Definition{
		Group:         "apps.example.com",
		Version:       "v1",
		Kind:          "App",
`,
		`		ShortNames:    []string{"a", "ap"},` + "\n", `		Plural:        "apps",` + "\n", "		ClusterScoped: true,\n",
		`		Scale:         &kube.ScalePaths{SpecReplicas: ".spec.n", StatusReplicas: ".status.n", Selector: ".status.s"},` + "\n",
		"		Storage:       true,\n", `		Deprecated:    "use v2",` + "\n",
		`			{Name: "A", Type: "string", JSONPath: ".spec.way.a", Description: "an A", Wide: true},` + "\n",
		`			".spec.way.a": "selectable",` + "\n", `			"x": "y",` + "\n", `			{Rule: "self.metadata.name != 'x'"},` + "\n",
		"// +kubebuilder:object:root=true\n\n// AppList is a list.",
		"// +kubebuilder:object:root=true\n\n// App is an application.", // the generated methods stay
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks\n%s", want)
		}
	}
	want := []string{
		"a.go:24: +kubebuilder:validation:MinLength=1 stays: write it into the methods CRDTag and Rules of Kept",
		"a.go:34: +kubebuilder:resource:scope=Cluster,shortName=a;ap,path=apps,singular=application is a part of Definition, with a difference: yare's singular is app",
		"a.go:44: App gets a subresource status, which it had not: a client has to write the status on its own",
		"a.go:44: App has a method Definition. When no other code needs methods of App, give Definition to the type of its spec, and write: type App = kube.CustomResource[AppSpec, AppStatus]",
	}
	if diff := cmp.Diff(want, notes); diff != "" || t.Failed() {
		t.Errorf("notes (-want +got):\n%s\n%s", diff, got)
	}
}

// A file without markers has the rules of yare about required fields, and stays as it is.
func TestFileWithoutMarkers(t *testing.T) {
	t.Parallel()
	const text = "package v1\n\ntype S struct {\n\tA []string `json:\"a\"`\n}\n"
	if got, notes := rewriteText(t, text); got != text || notes != nil {
		t.Errorf("%s\n%q", got, notes)
	}
}

// A package whose fields are optional by default says so in any of its files.
func TestOptionalPackage(t *testing.T) {
	t.Parallel()
	got, _ := rewriteText(t, "package v1\n\ntype S struct {\n\t// +kubebuilder:validation:Minimum=1\n\tA int `json:\"a\"`\n}\n", "// +kubebuilder:validation:Optional\npackage v1\n")
	if want := `crd:"optional,minimum=1"`; !strings.Contains(got, want) {
		t.Errorf("the text lacks %s:\n%s", want, got)
	}
}

// The types that are compared with controller-gen have markers, and tags that people wrote. Without these tags, the file
// gets equal ones for its markers.
func TestTagsOfTheComparedTypes(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../../../lab/controllergen/v1/types.go")
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(` crd:"(\\.|[^"\\])*"`).ReplaceAllString(string(source), "")
	bare = regexp.MustCompile(`(?ms)^// (?:CRDTag|Rules|Definition) returns what[^\n]*\n(?:func [^\n]*\{\n.*?^\}\n|func [^\n]*\n)`).ReplaceAllString(bare, "")
	got, _ := rewriteText(t, bare)
	want, have := tagsOf(t, string(source)), tagsOf(t, got)
	for name, tag := range want {
		for _, key := range []string{"selectable", "column"} { // the markers of the kind have them
			tag = slices.DeleteFunc(tag, func(text string) bool { return text == key })
		}
		// The tag repeats what the type of the field says.
		if extra := map[string][]string{"object": {"preserveUnknownFields"}, "anything": {"preserveUnknownFields"}, "conditions": {"listType=map", "listMapKey=type"}}[name]; extra != nil {
			tag = append(tag, extra...)
			slices.Sort(tag)
		}
		if !slices.Equal(tag, have[name]) {
			t.Errorf("%s: the tag has %q, not %q", name, have[name], tag)
		}
	}
	if len(want) < 20 {
		t.Errorf("only %d fields were compared", len(want))
	}
	for _, method := range []string{"(Port) CRDTag", "(Phase) CRDTag", "(Names) CRDTag", "(Point) CRDTag", "(Point) Rules", "(Way) CRDTag", "(Shop) Definition", "(Runner) Definition"} {
		if !strings.Contains(got, "func "+method) {
			t.Errorf("the file lacks the method %s", method)
		}
	}
}

// tagsOf returns the directives of the tags in a file by the names of the fields in JSON, sorted.
func tagsOf(t *testing.T, text string) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			name, _, tag := jsonTag(field)
			// Quotation marks and spaces that a tag can do without say nothing.
			if text := strings.NewReplacer("'", "", `": "`, `":"`, "[1, 2]", "[1,2]").Replace(tag.Get("crd")); text != "" {
				all[name] = strings.Split(text, ",")
				slices.Sort(all[name])
			}
		}
		return true
	})
	return all
}
