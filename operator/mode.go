package operator

// mode is what a program runs for. It decides what the program does about the mistakes of its author.
type mode int

const (
	// productionMode is the mode of a program that users depend on.
	productionMode mode = iota
	// developmentMode is the mode of a program with the environment variable [access.CheckVariable], which yare dev sets.
	developmentMode
	// testMode is the mode of a program in the process of a test, which ends with the test.
	testMode
)

// isStrict reports whether m is a strict mode. Then the program refuses requests that its parts do not declare, and a
// webhook that breaks a rule fails.
func (m mode) isStrict() bool { return m != productionMode }
