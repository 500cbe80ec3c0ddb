package console

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// testConsole is a console of two masters and two rules.
func testConsole() *Console {
	until := time.Date(2026, 11, 21, 5, 10, 0, 0, time.UTC)
	rules := route.Rules{
		{Match: "lock:*", DB: route.AnyDB, DefaultTTL: 30 * time.Second},
		{Match: "secret:*", DB: 3, Wait: 2 * time.Second, Renew: 10 * time.Minute, Release: true, Companions: []string{"wake:*"}},
	}
	return New(Config{
		Journal: events.New(slog.New(slog.DiscardHandler)),
		Clients: func() []events.ClientInfo { return nil },
		Active:  config.NewActive(&config.Settings{Router: &route.Router{Table: route.Builtin(), Rules: rules}}),
		Masters: func() events.State {
			return events.State{Masters: []events.Master{
				{MasterStatus: redlock.MasterStatus{Name: "m1:1", State: redlock.Voting, Longest: 90 * time.Second}, Since: until.Add(-10 * time.Minute)},
				{MasterStatus: redlock.MasterStatus{Name: "m2:1", State: redlock.Quarantined, Reason: "it may have forgotten locks", Until: until}, Since: until.Add(-10 * time.Minute)},
			}}
		},
		Ready: func() string { return "ready: 1 of 2\nm2:1 is quarantined\rfor long" },
	})
}

// HELP has each subcommand of the table of commands, and each is answered.
func TestHelp(t *testing.T) {
	help := ask(testConsole(), "REDLOCK HELP", wire.RESP2)
	for spec := range route.Builtin().All() {
		name, isOurs := strings.CutPrefix(spec.Name, "redlock|")
		if isOurs && !strings.Contains(help, "\r\n+"+strings.ToUpper(name)) {
			t.Errorf("HELP does not mention %s", name)
		}
		if isOurs && !slices.ContainsFunc(subcommands(), func(s subcommand) bool { return s.name == spec.Name }) {
			t.Errorf("nothing answers %s", spec.Name)
		}
	}
}

// One at a time lists locks.
func TestHeldWaitsForItsTurn(t *testing.T) {
	c := testConsole()
	c.Reader = readerOf("held", nil)
	c.walking <- struct{}{}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := c.Held(over, "", 3); ok {
		t.Error("two list locks at a time")
	}
}
