package master

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// A master that refuses what locks need is shown as rejected, with its reason, until it refuses
// nothing more. Its answers to other questions count as before.
func TestAMasterThatRefusesLocksIsShownAsRejected(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := New(ctx, Options{Servers: []Server{{Name: "a"}}, Log: slog.New(slog.DiscardHandler), Observer: deafObserver{}, Slept: func() time.Duration { return 0 }})
	s.Wait()
	d := s.At(0).database(0)
	d.Up(stream.Greeting{}, time.Now())
	check := func(marker string) {
		now := time.Now()
		d.Judge(stream.Check{Marker: []byte(marker), Time: []byte("*2\r\n$1\r\n5\r\n$1\r\n0\r\n"), Fits: true, Sent: now, Received: now})
	}
	const none, loading = "$-1\r\n", "-LOADING Redis is loading the dataset in memory\r\n"
	const noSet = "no set of masters is known yet"
	for _, step := range []struct {
		does   func()
		state  roster.State
		reason string
	}{
		{func() { d.Refuses([]byte("-OOM no\r\n")) }, roster.Unreachable, ""}, // it was not judged yet
		{func() { check(none) }, roster.Rejected, "(OOM); raise its maxmemory"},
		{func() { d.Refuses([]byte("-NOREPLICAS no\r\n")) }, roster.Rejected, "(NOREPLICAS); set its min-replicas-to-write to 0"},
		{func() { check(none) }, roster.Rejected, "(NOREPLICAS)"},
		{func() { check(loading) }, roster.Starting, "(LOADING)"},
		{func() { d.Refuses([]byte(loading)) }, roster.Starting, "(LOADING)"},
		{func() { d.Refuses(nil) }, roster.Starting, "(LOADING)"},
		{func() { check(none) }, roster.Starting, noSet},
		{func() { d.Refuses([]byte("-NOPERM no permissions to run the 'set' command\r\n")) }, roster.Rejected, "denies the proxy's user a command that locks need; grant it (the server says: NOPERM no permissions to run the 'set' command)"},
		{func() { d.Refuses(nil) }, roster.Starting, noSet},
		{func() { d.Refuses([]byte("-ERR unknown command 'WATCH'\r\n")) }, roster.Rejected, "the server says: ERR unknown command 'WATCH'"},
		{func() { d.Up(stream.Greeting{}, time.Now()); check(none) }, roster.Starting, noSet}, // it may be another server
	} {
		step.does()
		got := ask(s.voters, func(r *roster.Roster) roster.Status { return r.Status(time.Now()) }).Masters[0]
		if got.State != step.state || !strings.Contains(got.Reason, step.reason) {
			t.Errorf("it is %s because %q, and not %s because %q", got.State, got.Reason, step.state, step.reason)
		}
	}
}
