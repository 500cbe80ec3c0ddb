package redlock

import "time"

// ReadMarker reads the value of MarkerKey; ok is false for any other text.
func ReadMarker(text string) (facts MarkerFacts, ok bool) { return readMarkerFacts(text, time.Now()) }
