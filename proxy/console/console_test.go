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
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// enter makes a client of the console's process.
func enter(c *Console) *events.Client {
	client := events.NewClient(3, "10.0.0.3:1", time.Now())
	c.Clients = func() []events.ClientInfo {
		info := client.Info()
		info.WaitsOn = "nobody"
		return []events.ClientInfo{info}
	}
	return client
}

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

// ask sends a command as a user that has the right to send it.
func ask(c *Console, line string, version wire.Version) string {
	args := proxytest.Words(line)
	call := Command{Args: args, Route: c.Active.Load().Router.Route(0, args), Version: version, User: &config.Account{Name: "alice"}}
	return string(c.Do(context.Background(), nil, call))
}

func TestMasters(t *testing.T) {
	c := testConsole()
	for version, want := range map[wire.Version]string{
		wire.RESP2: "*2\r\n*14\r\n$6\r\nnumber\r\n:1\r\n$4\r\nname\r\n$4\r\nm1:1\r\n$5\r\nstate\r\n$6\r\nvoting\r\n$6\r\nreason\r\n$0\r\n\r\n$5\r\nsince\r\n$20\r\n2026-11-21T05:00:00Z\r\n$5\r\nuntil\r\n$-1\r\n$14\r\nlongest-ttl-ms\r\n:90000\r\n" +
			"*14\r\n$6\r\nnumber\r\n:2\r\n$4\r\nname\r\n$4\r\nm2:1\r\n$5\r\nstate\r\n$11\r\nquarantined\r\n$6\r\nreason\r\n$27\r\nit may have forgotten locks\r\n$5\r\nsince\r\n$20\r\n2026-11-21T05:00:00Z\r\n$5\r\nuntil\r\n$20\r\n2026-11-21T05:10:00Z\r\n$14\r\nlongest-ttl-ms\r\n:0\r\n",
		wire.RESP3: "*2\r\n%7\r\n$6\r\nnumber\r\n:1\r\n$4\r\nname\r\n$4\r\nm1:1\r\n$5\r\nstate\r\n$6\r\nvoting\r\n$6\r\nreason\r\n$0\r\n\r\n$5\r\nsince\r\n$20\r\n2026-11-21T05:00:00Z\r\n$5\r\nuntil\r\n_\r\n$14\r\nlongest-ttl-ms\r\n:90000\r\n" +
			"%7\r\n$6\r\nnumber\r\n:2\r\n$4\r\nname\r\n$4\r\nm2:1\r\n$5\r\nstate\r\n$11\r\nquarantined\r\n$6\r\nreason\r\n$27\r\nit may have forgotten locks\r\n$5\r\nsince\r\n$20\r\n2026-11-21T05:00:00Z\r\n$5\r\nuntil\r\n$20\r\n2026-11-21T05:10:00Z\r\n$14\r\nlongest-ttl-ms\r\n:0\r\n",
	} {
		if got := ask(c, "REDLOCK MASTERS", version); got != want {
			t.Errorf("RESP%d:\ngot  %q\nwant %q", version.Number(), got, want)
		}
	}
}

func TestRules(t *testing.T) {
	first := "*14\r\n$5\r\nmatch\r\n$6\r\nlock:*\r\n$2\r\ndb\r\n$-1\r\n$14\r\ndefault-ttl-ms\r\n:30000\r\n$7\r\nwait-ms\r\n:0\r\n$8\r\nrenew-ms\r\n:0\r\n$13\r\non-disconnect\r\n$4\r\nkeep\r\n$10\r\ncompanions\r\n*0\r\n"
	second := "*14\r\n$5\r\nmatch\r\n$8\r\nsecret:*\r\n$2\r\ndb\r\n:3\r\n$14\r\ndefault-ttl-ms\r\n:0\r\n$7\r\nwait-ms\r\n:2000\r\n$8\r\nrenew-ms\r\n:600000\r\n$13\r\non-disconnect\r\n$7\r\nrelease\r\n$10\r\ncompanions\r\n*1\r\n$6\r\nwake:*\r\n"
	if got, want := ask(testConsole(), "REDLOCK RULES", wire.RESP2), "*2\r\n"+first+second; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStatusIsOneLine(t *testing.T) {
	want := "+ready: 1 of 2; m2:1 is quarantined for long\r\n"
	if got := ask(testConsole(), "redlock status", wire.RESP3); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrongSubcommands(t *testing.T) {
	for line, want := range map[string]string{
		"REDLOCK":                "-ERR wrong number of arguments for 'redlock' command\r\n",
		"REDLOCK STATUS now":     "-ERR wrong number of arguments for 'redlock|status' command\r\n",
		"redlock nosuch":         "-ERR unknown subcommand 'nosuch'. Try REDLOCK HELP.\r\n",
		"REDLOCK a\rb lock:a x":  "-ERR unknown subcommand 'a b'. Try REDLOCK HELP.\r\n",
		"REDLOCK TOKEN app v":    "-ERR REDLOCK TOKEN needs a lock key, and no lock rule matches this one; REDLOCK RULES has the rules\r\n",
		"REDLOCK TOKEN app":      "-ERR wrong number of arguments for 'redlock|token' command\r\n",
		"REDLOCK HELP something": "-ERR wrong number of arguments for 'redlock|help' command\r\n",
	} {
		if got := ask(testConsole(), line, wire.RESP2); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// HELP has each subcommand of the table of commands, in Redis's form.
func TestHelp(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(ask(testConsole(), "REDLOCK HELP", wire.RESP2), "\r\n"), "\r\n+")
	if want := "REDLOCK <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"; len(lines) < 3 || lines[1] != want && !strings.HasSuffix(lines[0], want) {
		t.Fatalf("%q", lines)
	}
	if last := lines[len(lines)-2:]; !slices.Equal(last, []string{"HELP", "    Prints this help."}) {
		t.Errorf("it ends with %q", last)
	}
	for spec := range route.Builtin().All() {
		name, isOurs := strings.CutPrefix(spec.Name, "redlock|")
		if isOurs && !slices.ContainsFunc(lines, func(line string) bool {
			return line == strings.ToUpper(name) || strings.HasPrefix(line, strings.ToUpper(name)+" ")
		}) {
			t.Errorf("HELP does not mention %s", name)
		}
		if isOurs && !slices.ContainsFunc(subcommands(), func(s subcommand) bool { return s.name == spec.Name }) {
			t.Errorf("nothing answers %s", spec.Name)
		}
	}
}
