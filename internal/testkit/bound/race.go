//go:build race

package bound

const isRaceDetector = true
