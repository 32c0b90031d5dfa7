package values_test

import (
	"testing"

	"github.com/yare-go/yare/explore/internal/values"
)

// Another text has the form of the text, as far as the text shows a form.
func TestOtherText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "explored", "hello": "hellox", "true": "false", "false": "true", "41": "42", "10s": "11s", "2.5Gi": "2.6Gi",
		"nginx:1.27": "nginx:1.28", "0 5 * * *": "0 6 * * *", "a=1\nb=9\n": "a=1\nb=10\n", "mode: fast\n": "mode: fast\n# explored\n",
		"{}": "{}\n", "<a/>": "<a/><!-- explored -->\n", "0123456789abc": "0123456789abcx",
	} {
		if got := values.OtherText(text); got != want {
			t.Errorf("another text for %q is %q, want %q", text, got, want)
		}
	}
}
