package operator

// Service is a part that the others use while they work, such as a recorder of events. The
// program asks it to end, by its ctx, when all other parts have ended, and then waits for
// it: so it sees the last of what they do, and must bound its own end itself. A service
// that is done earlier ends nothing.
type Service interface {
	Part
	// Service tells a service from other parts. It does nothing.
	Service()
}
