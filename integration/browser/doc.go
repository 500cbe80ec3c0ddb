// Package browser tests the page at the admin address as a person sees it: in a real
// Chromium without a screen, over real servers. It also makes the picture in the README:
//
//	REDLOCK_TEST=long go test ./integration/browser -run TestPage -screenshot ../deploy/page.png
//
// The tests speak the DevTools protocol over a pipe (chromium_test.go).
package browser
