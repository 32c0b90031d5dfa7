package lifecycle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParseSettingsReportsEveryProblem(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		OutcomeAnnotation:        "explode",
		ReadyAfterAnnotation:     "5",
		CompleteAfterAnnotation:  "-3s",
		TerminateAfterAnnotation: "10s",
		ExitCodeAnnotation:       "256",
		Prefix + "outcom":        "fail",
		"example.com/outcome":    "none of our business",
	}}}
	settings, problems := ParseSettings(pod)
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.Annotation, Prefix)+"="+p.Value)
		if text := p.String(); !strings.Contains(text, p.Annotation) || !strings.Contains(text, p.Value) {
			t.Errorf("%q does not name annotation and value", text)
		}
	}
	if want := "complete-after=-3s exit-code=256 outcom=fail outcome=explode ready-after=5"; strings.Join(got, " ") != want {
		t.Errorf("problems are %s, want %s", got, want)
	}
	if settings.TerminateAfter.String() != "10s" || settings.Outcome != Succeed || settings.ReadyAfter != 0 {
		t.Errorf("settings are %+v", settings)
	}
}
