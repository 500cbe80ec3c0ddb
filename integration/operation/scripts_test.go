package operation

import (
	"testing"

	"redlock-proxy/integration/stage"
)

// TestSteps plays testdata/scripts/*.txt: each is a list of an operator's steps. Package stage explains them.
func TestSteps(t *testing.T) {
	t.Parallel()
	stage.Play(t, "operation/testdata/scripts/*.txt")
}
