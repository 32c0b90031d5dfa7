package controller

// logThrottle counts how often the same text came in a row.
type logThrottle struct {
	text  string
	count int
}

// record counts an occurrence of text, and returns how often text has come in a row.
func (t *logThrottle) record(text string) int {
	if text != t.text {
		t.text, t.count = text, 0
	}
	t.count++
	return t.count
}

// shouldLog reports whether the count-th occurrence of a text in a row should be logged: the
// first, the second, the fourth, the eighth and so on.
func shouldLog(count int) bool { return count&(count-1) == 0 }
