package lock

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock"
)

// Commands that come before the masters vote wait until the masters vote or the client
// goes.
func TestCommandsWaitForTheStart(t *testing.T) {
	for _, row := range []struct {
		over, gone, want time.Duration
	}{
		{time.Second, time.Minute, time.Second},
		{time.Minute, time.Second, time.Second},
		{0, time.Minute, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, starting := newFakeLockerPlane(won), make(chan struct{})
			p.Starting = starting
			time.AfterFunc(row.over, func() { close(starting) })
			ctx, cancel := context.WithTimeout(t.Context(), row.gone)
			defer cancel()
			begun := time.Now()
			p.Do(ctx, nil, fakeLockerCall("GET k"))
			if took := time.Since(begun); took != row.want {
				t.Errorf("%+v: it waited for %v", row, took)
			}
			time.Sleep(time.Minute)
		})
	}
}

func won(any) fakeAnswer { return fakeAnswer{Outcome: redlock.Outcome{Verdict: redlock.Won}} }

func TestPanicComesBackToTheCaller(t *testing.T) {
	p := newFakeLockerPlane(func(any) fakeAnswer { panic("defect") })
	defer func() {
		if got := fmt.Sprint(recover()); got != "defect" {
			t.Errorf("recovered %s", got)
		}
	}()
	p.Do(t.Context(), nil, fakeLockerCall("DEL a b c"))
}
