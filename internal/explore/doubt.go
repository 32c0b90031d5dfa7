package explore

import (
	"fmt"
)

// doubts returns why the references may prove nothing: a program that does nothing right without faults does
// the same with them.
func (e *explorer) doubts() (doubts []string) {
	writes, failures, lastFailure := 0, 0, ""
	errorLine, linesCount := "", 0
	for _, reference := range e.references {
		for _, r := range reference.requests {
			if !isPoint(r) || !r.Point.IsWrite() {
				continue
			}
			writes++
			if r.Code/100 != 2 {
				failures++
				lastFailure = fmt.Sprintf("%s, was answered with %d", r.Point, r.Code)
				if r.Code == 0 {
					lastFailure = fmt.Sprintf("%s, got no answer", r.Point)
				}
			}
		}
		if reference.errorLine != "" {
			linesCount++
			errorLine = reference.errorLine
		}
	}
	switch {
	case writes == 0:
		doubts = append(doubts, "The program wrote no object in the reference runs. Their end states are those of a program that does nothing.")
	case writes == failures:
		doubts = append(doubts, fmt.Sprintf("Each of the %d writes of the reference runs failed: the last one, %s. Their end states are those of a program that does nothing.", writes, lastFailure))
	}
	if linesCount == len(e.references) {
		doubts = append(doubts, "The program logged an error in each reference run. What fails without faults is not compared with anything right. The last error: "+errorLine)
	}
	return doubts
}
