package proxy

import (
	"log/slog"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/events"
)

// withConsole gives a test proxy a console over masters that all vote.
func withConsole(c *testConfig) {
	c.Console = console.New(console.Config{
		Journal: events.New(slog.New(slog.DiscardHandler)),
		Clients: c.known,
		Active:  config.NewActive(&c.Settings),
		Masters: func() events.State { return events.State{} },
		Unruled: c.Unruled,
		Ready:   func() string { return "ready: 5 of 5" },
	})
}
