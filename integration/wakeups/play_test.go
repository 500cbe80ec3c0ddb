package wakeups

import (
	"testing"

	"redlock-proxy/integration/stage"
)

// TestScripts plays testdata/scripts/*.txt. Package stage explains them.
func TestScripts(t *testing.T) {
	t.Parallel()
	stage.Play(t, "wakeups/testdata/scripts/*.txt")
}
