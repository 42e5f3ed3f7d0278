//go:build race

package storetest

// raceDetector makes everything about ten times slower, so the longest test does
// a part of its rounds.
const raceDetector = true
