package controller

// selection is whether there is an object to work on, and whether the selectors of [Reconciled] select it.
type selection int

const (
	// noObject means that there is no object to work on: it does not exist, it does not concern the controller, or it
	// could not be read.
	noObject selection = iota
	// notShownYet means that the object has begun to match the selectors again, and the stream of the controller is about
	// to show the object. The change leads to another reconcile.
	notShownYet
	// selected means that the object exists, and the controller reconciles it.
	selected
	// deselected means that the object exists and has the finalizer, but no longer matches the
	// selectors of [Reconciled].
	deselected
)
