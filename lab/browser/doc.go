// Package browser has no content but tests: a browser, Chromium, reads the live page of an operator that runs against a
// real API server. It is a module of its own, because nobody who imports yare may inherit a driver of browsers.
package browser
