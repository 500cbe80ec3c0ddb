package history

import (
	"testing"
	"time"
)

// TestLeaseModel checks the judge of the campaign against histories with a known verdict.
func TestLeaseModel(t *testing.T) {
	const ttl = 1000
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	call := func(asked Question, token string, begin, end int, answer Answer) Call {
		return Call{Key: "lock:x", Asked: asked, Token: token, TTL: ms(ttl), Begin: ms(begin), End: ms(end), Answer: answer}
	}
	for name, test := range map[string]struct {
		sound bool
		calls []Call
	}{
		"one after the other": {true, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskRelease, "a", 500, 510, Yes),
			call(AskAcquire, "b", 505, 520, Yes), call(AskRelease, "b", 600, 610, Yes)}},
		"two holders": {false, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskRelease, "a", 500, 510, Yes), call(AskAcquire, "b", 400, 420, Yes)}},
		"after the lease has run out": {true, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskAcquire, "b", 980, 1000, Yes)}},
		"before the lease has run out": {false, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskAcquire, "b", 960, 980, Yes)}},
		"after the first lease, within the extension": {false, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskExtend, "a", 500, 510, Yes), call(AskAcquire, "b", 1200, 1210, Yes)}},
		"after the extension": {true, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskExtend, "a", 500, 510, Yes), call(AskAcquire, "b", 1500, 1510, Yes)}},
		"an unsure extension counts for nothing": {true, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskExtend, "a", 500, 510, Unsure), call(AskAcquire, "b", 1000, 1010, Yes)}},
		"an unsure release may have happened": {true, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskRelease, "a", 100, 150, Unsure), call(AskAcquire, "b", 120, 130, Yes)}},
		"an unsure release may happen late": {true, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskRelease, "a", 100, 150, Unsure), call(AskAcquire, "b", 300, 310, Yes)}},
		"not before it was asked for": {false, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskRelease, "a", 100, 150, Unsure), call(AskAcquire, "b", 50, 60, Yes)}},
		"an unsure acquire may have happened": {true, []Call{
			call(AskAcquire, "a", 0, 10, Unsure), call(AskRelease, "a", 20, 30, Yes), call(AskAcquire, "b", 25, 40, Yes)}},
		"the holder is denied": {false, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskRelease, "a", 100, 110, no)}},
		"a holder of yesterday is denied": {true, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskRelease, "a", 1100, 1110, no)}},
		"extended although another had it": {false, []Call{
			call(AskAcquire, "a", 0, 10, Yes), call(AskAcquire, "b", 1000, 1010, Yes),
			call(AskExtend, "a", 1100, 1110, Yes), call(AskRelease, "b", 1200, 1210, Yes)}},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := Check(time.Now(), test.calls); (len(wrong) == 0) != test.sound {
				t.Errorf("judged %v, want sound: %v", wrong, test.sound)
			}
		})
	}
}
