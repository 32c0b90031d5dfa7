package operator

// Service is a part that other parts use while they run, such as a recorder of events. Its
// context ends when all other parts have ended. The program then waits for it. A Service must
// bound the time that its end takes. The end of a Service does not end the program.
type Service interface {
	Part
	// Service marks a part as a service. It does nothing.
	Service()
}
