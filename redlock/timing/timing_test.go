package timing

import (
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	const ms = time.Millisecond
	short := Limits{MasterTimeout: 100 * ms, ClockDrift: 0.01, RestartDelay: 2 * time.Second, MaxQuarantine: 8 * time.Second}
	slow := Limits{MasterTimeout: 2 * time.Second, ClockDrift: 0.01, RestartDelay: 30 * time.Second, MaxQuarantine: 10 * time.Minute}
	for _, row := range []struct {
		what        string
		short, slow time.Duration
		of          func(l Limits) time.Duration
	}{
		{"the quarantine without longer locks", 2 * time.Second, 30 * time.Second, func(l Limits) time.Duration { return l.Quarantine(0) }},
		{"the quarantine after a minute's lock", 8 * time.Second, time.Minute, func(l Limits) time.Duration { return l.Quarantine(time.Minute) }},
		{"the least restart delay", 2040 * ms, 3570 * ms, Limits.LeastRestartDelay},
		{"a late marker", 470 * ms, 4 * time.Second, Limits.LateMark},
		{"the turn without longer locks", 7020 * ms, 35300 * ms, func(l Limits) time.Duration { return l.Turn(0) }},
		{"the turn after a minute's lock", 65600 * ms, 65600 * ms, func(l Limits) time.Duration { return l.Turn(time.Minute) }},
		{"the patience with a jump", 100 * ms, 500 * ms, Limits.JumpPatience},
		{"a watched clock", 1600 * ms, 2 * time.Second, Limits.Watch},
	} {
		if got := row.of(short); got != row.short {
			t.Errorf("%s: %v, want %v", row.what, got, row.short)
		}
		if got := row.of(slow); got != row.slow {
			t.Errorf("%s with long limits: %v, want %v", row.what, got, row.slow)
		}
	}
	slow.RestartDelay = slow.LeastRestartDelay()
	if got := slow.LateMark(); got != 2040*ms {
		t.Errorf("a late marker of a slow master with the least delay: %v, want master_timeout at least", got)
	}
}
