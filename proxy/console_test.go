package proxy

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

const readyLine = "+ready: 5 of 5\r\n"

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

// REDLOCK is answered in its place among other commands, with an upstream and without.
func TestConsoleAnswersInOrder(t *testing.T) {
	for name, redis := range map[string]*proxytest.Redis{"upstream": proxytest.StartRedis(t), "none": nil} {
		client := startTestProxy(t, redis, withConsole).dial(t)
		client.ask("SET lock:a 1 NX\r\nPING\r\nREDLOCK STATUS\r\nGET lock:a\r\n", "+OK\r\n+PONG\r\n"+readyLine+"$1\r\n1\r\n")
		client.ask("HELLO 3\r\n", helloText(3))
		client.ask("CLIENT REPLY SKIP\r\nREDLOCK STATUS\r\nREDLOCK MASTERS\r\n", "*0\r\n")
		client.ask("REDLOCK nosuch lock:a\r\n", "-ERR unknown subcommand 'nosuch'. Try REDLOCK HELP.\r\n")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// In a transaction REDLOCK is refused, and the transaction with it.
func TestConsoleInMulti(t *testing.T) {
	redis := proxytest.StartRedis(t)
	client := startTestProxy(t, redis, withConsole).dial(t)
	for _, before := range []string{"", "SET app 1\r\n", "SET lock:a 1\r\n"} {
		want := "+OK\r\n" + strings.Repeat("+QUEUED\r\n", strings.Count(before, "\n"))
		client.ask("MULTI\r\n"+before+"REDLOCK STATUS\r\nEXEC\r\n", want+string(wire.ErrNotInMulti)+string(wire.ErrExecAbort))
	}
	client.ask("MULTI\r\nREDLOCK STATUS x\r\nDISCARD\r\n", "+OK\r\n"+string(wire.ErrArity("redlock|status"))+"+OK\r\n")
	client.ask("GET app\r\nGET lock:a\r\nREDLOCK STATUS\r\n", "$-1\r\n$-1\r\n"+readyLine)
}

// A client in subscribe mode or in MONITOR gets an error, and the upstream nothing.
func TestConsoleInOtherModes(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, withConsole)
	client := p.dial(t)
	client.ask("SUBSCRIBE news\r\n", confirmed("*", "subscribe", "news", 1))
	client.ask("REDLOCK STATUS\r\n", string(wire.ErrRestricted("redlock|status")))
	monitor := p.dial(t)
	monitor.ask("MONITOR\r\n", "+OK\r\n")
	monitor.ask("REDLOCK STATUS\r\n", string(wire.ErrInPipe))
}

// REDLOCK needs the right to use locks.
func TestConsoleRights(t *testing.T) {
	p := startWithUsers(t, nil, withConsole)
	client := p.dial(t)
	client.ask("REDLOCK STATUS\r\n", string(wire.ErrNoAuth))
	for user, want := range map[string]string{
		"alice": readyLine, "locker": readyLine, "reader": string(wire.ErrNoPermCommand("redlock|status")),
	} {
		client.ask("AUTH "+user+" pw\r\nREDLOCK STATUS\r\n", wire.OK+want)
	}
	client.ask("AUTH reader pw\r\nREDLOCK nosuch\r\nREDLOCK HELP x\r\n", wire.OK+string(wire.ErrNoPermCommand("redlock"))+string(wire.ErrArity("redlock|help")))
}

// CLIENTS needs both rights, because it shows other users' clients. It shows a name that
// was set at any time, whoever answered CLIENT SETNAME, and the library.
func TestConsoleShowsClients(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startWithUsers(t, redis, withConsole)
	client := p.dial(t)
	eventually(t, "the client has come", func() bool { return len(p.clients.Known()) == 1 })
	facts := func() events.Identity {
		list := p.clients.Known()
		if len(list) != 1 || list[0].Address != client.LocalAddr().String() {
			t.Fatalf("%+v", list)
		}
		return list[0].Identity
	}
	if got, want := facts(), (events.Identity{RESP: 2}); got != want {
		t.Errorf("a client that has sent nothing: %+v", got)
	}
	client.ask("AUTH locker pw\r\nREDLOCK CLIENTS\r\n", wire.OK+string(wire.ErrNoPermCommand("redlock|clients")))
	for _, step := range []struct {
		text, reply string
		want        events.Identity
	}{
		{"CLIENT SETNAME early\r\n", "+OK\r\n", events.Identity{Name: "early", User: "locker", RESP: 2}},
		{"AUTH alice pw\r\nGET app\r\n", "+OK\r\n$-1\r\n", events.Identity{Name: "early", User: "alice", RESP: 2}},
		{"CLIENT SETNAME late\r\n", "+OK\r\n", events.Identity{Name: "late", User: "alice", RESP: 2}},
		{"CLIENT SETNAME a\x01b\r\n", string(wire.ErrClientName), events.Identity{Name: "late", User: "alice", RESP: 2}},
		{"SELECT 3\r\n", "+OK\r\n", events.Identity{Name: "late", User: "alice", DB: 3, RESP: 2}},
		{"HELLO 3 SETNAME latest\r\n", helloText(3), events.Identity{Name: "latest", User: "alice", DB: 3, RESP: 3}},
		{"RESET\r\n", "+RESET\r\n", events.Identity{RESP: 2}},
	} {
		client.ask(step.text, step.reply)
		eventually(t, step.text, func() bool { return facts() == step.want })
	}
	client.ask("AUTH alice pw\r\nCLIENT SETINFO LIB-NAME lib\r\nCLIENT SETINFO LIB-VER 9.7\r\n", wire.OK+wire.OK+wire.OK)
	eventually(t, "its library is shown", func() bool { return p.clients.Known()[0].LibName == "lib" && p.clients.Known()[0].LibVersion == "9.7" })
	_ = client.Close()
	eventually(t, "the client has left", func() bool { return len(p.clients.Known()) == 0 })
}

// A client that has got the answer to its login is shown with its new user, also where
// answers are written at once.
func TestLoginIsShownBeforeItsAnswer(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for name, row := range map[string]struct{ mode, modeReply, login, reply string }{
		"AUTH in MONITOR":        {"AUTH alice pw\r\nMONITOR\r\n", wire.OK + wire.OK, "AUTH %s pw\r\n", wire.OK},
		"HELLO that listens too": {"AUTH alice pw\r\nHELLO 3\r\nSUBSCRIBE lock:news\r\n", "", "HELLO 3 AUTH %s pw\r\n", helloText(3)},
	} {
		p := startWithUsers(t, redis, withConsole)
		client := p.dial(t)
		if row.modeReply == "" {
			row.modeReply = wire.OK + helloText(3) + confirmed(">", "subscribe", "lock:news", 1)
		}
		client.ask(row.mode, row.modeReply)
		for i := range 100 {
			user := []string{"locker", "alice"}[i%2]
			client.ask(fmt.Sprintf(row.login, user), row.reply)
			if got := p.clients.Known()[0].User; got != user {
				t.Errorf("%s, login %d: %s is shown, not %s", name, i, got, user)
				break
			}
		}
		_ = client.Close()
	}
}

// REDLOCK TOKEN needs the rights of a lock command, and works on lock keys only.
func TestTokens(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startWithUsers(t, redis, withConsole)
	client := p.dial(t)
	client.ask("REDLOCK TOKEN lock:a me\r\n", string(wire.ErrNoAuth))
	client.ask("AUTH alice pw\r\nSET lock:a me NX PX 60000\r\nREDLOCK TOKEN lock:a other\r\nREDLOCK TOKEN lock:b me\r\n", wire.OK+wire.OK+"$-1\r\n$-1\r\n")
	client.ask("PING\r\nREDLOCK TOKEN lock:a me\r\nGET lock:a\r\n", "+PONG\r\n:42\r\n$2\r\nme\r\n")
	client.ask("REDLOCK TOKEN app me\r\nREDLOCK TOKEN lock:a\r\n", string(wire.ErrNoToken)+string(wire.ErrArity("redlock|token")))
	client.ask("MULTI\r\nREDLOCK TOKEN lock:a me\r\nEXEC\r\n", wire.OK+string(wire.ErrNotInMulti)+string(wire.ErrExecAbort))
	client.ask("HELLO 3\r\nREDLOCK TOKEN lock:a other\r\n", helloText(3)+"_\r\n")
	client.ask("REDLOCK TOKEN "+redlock.MarkerKey+" me\r\n", string(wire.ErrReservedKey))
	reader := p.dial(t)
	reader.ask("AUTH reader pw\r\nREDLOCK TOKEN lock:a me\r\n", wire.OK+string(wire.ErrNoPermCommand("redlock|token")))
}
