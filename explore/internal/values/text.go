package values

import (
	"regexp"
	"strconv"
	"strings"
)

// maxDigits is how many digits a number in a text may have so that [OtherText] counts it as a number. Longer ones are
// parts of hashes, for example.
const maxDigits = 9

// OtherText returns another text that may have the same form: the last number is one more, a boolean is the opposite,
// and any other text is longer. Examples: "nginx:1.27" becomes "nginx:1.28", "0 5 * * *" becomes "0 6 * * *", "10s"
// becomes "11s", "true" becomes "false", and "hello" becomes "hellox". A text of several lines, such as a file, has one
// more line.
func OtherText(text string) string {
	switch text {
	case "":
		return "explored"
	case "true":
		return "false"
	case "false":
		return "true"
	}
	numbers := regexp.MustCompile(`\d+`).FindAllStringIndex(text, -1)
	for i := len(numbers) - 1; i >= 0; i-- {
		from, to := numbers[i][0], numbers[i][1]
		if n, err := strconv.Atoi(text[from:to]); err == nil && to-from <= maxDigits {
			return text[:from] + strconv.Itoa(n+1) + text[to:]
		}
	}
	switch trimmed := strings.TrimSpace(text); {
	case strings.HasPrefix(trimmed, "{"), strings.HasPrefix(trimmed, "["):
		return text + "\n"
	case strings.HasPrefix(trimmed, "<"):
		return text + "<!-- explored -->\n"
	case strings.HasSuffix(text, "\n"):
		return text + "# explored\n"
	}
	return text + "x"
}
