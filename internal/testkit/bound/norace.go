//go:build !race

package bound

const isRaceDetector = false
