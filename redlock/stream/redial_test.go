package stream

import (
	"errors"
	"testing"

	"redlock-proxy/redlock/resp"
)

// A web server at a master's address is reported once, not at each redial.
func TestAMalformedReplyIsLoggedOnce(t *testing.T) {
	refused := errors.New("connection refused")
	web, other := resp.MalformedError("unknown type byte"), resp.MalformedError("line too long")
	var p problem
	for i, step := range []struct {
		why       error
		connected bool
		want      bool
	}{
		{refused, false, false},
		{web, false, true},
		{web, false, false},
		{refused, false, false},
		{web, false, false},
		{other, false, true},
		{web, false, true},
		{web, true, true}, // this server is a Redis, so each time is a defect of its own
		{web, true, true},
		{web, false, false},
		{refused, true, false},
		{web, false, true}, // a Redis was there meanwhile
	} {
		if got := p.isNews(step.why, step.connected); got != step.want {
			t.Errorf("step %d, %v: %v", i, step.why, got)
		}
	}
}
