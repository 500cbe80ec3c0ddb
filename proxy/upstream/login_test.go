package upstream

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/wire"
)

func TestLoginSteps(t *testing.T) {
	client := Login{
		ClientSettings: ClientSettings{Version: wire.RESP3, DB: 5, Name: "me", LibName: "jedis", LibVersion: "7", NoEvict: true, NoTouch: true},
		AsksID:         true, Tracking: []string{"CLIENT", "TRACKING", "ON"},
	}
	const settings = "CLIENT ID,CLIENT SETNAME me,CLIENT SETINFO lib-name jedis,CLIENT SETINFO lib-ver 7,CLIENT NO-EVICT on,CLIENT NO-TOUCH on,CLIENT TRACKING ON"
	rest := "HELLO 3,SELECT 5," + settings
	database := func(n int) ClientSettings { return ClientSettings{DB: n} }
	own, claimed := client, client
	own.User, own.Password = "proxy", "pw"
	claimed.Claim = &Claim{Auth: []byte("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n")}
	for want, row := range map[string]struct {
		login   Login
		answers []string
	}{
		"PING":                            {Login{}, []string{wire.Pong}},
		"AUTH pw,PING":                    {Login{Password: "pw"}, []string{wire.OK + wire.Pong}},
		"AUTH proxy pw," + rest + ",PING": {own, []string{strings.Repeat(wire.OK, 10) + wire.Pong}},
		"AUTH pw," + rest:                 {claimed, []string{strings.Repeat(wire.OK, 10)}},
		"PING,SELECT 1":                   {Login{ClientSettings: database(1), Claim: &Claim{}}, []string{wire.Pong + wire.OK}},
		"PING,SELECT 2,CLIENT ID":         {Login{ClientSettings: database(2), Claim: &Claim{}, AsksID: true}, []string{wire.Pong + wire.OK + "-ERR what?\r\n"}},
		"SELECT 3,PING":                   {Login{ClientSettings: database(3)}, []string{">1\r\n+a push\r\n" + wire.OK + wire.Pong}},
	} {
		r := open(t, &row.login, row.answers...)
		if r.failure != nil || !r.known {
			t.Errorf("%s: known %v, %+v", want, r.known, r.failure)
			continue
		}
		r.Close()
		if got := r.commands(); got != want {
			t.Errorf("the upstream is sent %q, want %q", got, want)
		}
	}
}

// The client hears why a login failed: the upstream's state in the upstream's words, and
// a refusal of the proxy in the proxy's words.
func TestLoginFailures(t *testing.T) {
	const loading, noAuth, wrong = "-LOADING Redis is loading the dataset in memory\r\n", "-NOAUTH Authentication required.\r\n", "-WRONGPASS no\r\n"
	const full = "-ERR max number of clients reached\r\n"
	denied := "-DENIED " + strings.Repeat("of this ", 200) + "\r\n"
	said := &Claim{Auth: []byte("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n")}
	for name, row := range map[string]struct {
		login    Login
		answer   string
		reply    wire.Error
		rejected bool
	}{
		"it is full":           {Login{}, full, full, false},
		"it is protected":      {Login{}, denied, wire.Error(denied), false},
		"it closes":            {Login{}, "", wire.ErrUpstreamDown, false},
		"it closes in a word":  {Login{}, "+PON", wire.ErrUpstreamDown, false},
		"it speaks HTTP":       {Login{}, "HTTP/1.1 400 Bad Request\r\n\r\n", wire.ErrUpstreamReply, false},
		"it answers nonsense":  {Login{}, ":1\r\n", wire.ErrUpstreamReply, false},
		"it never stops":       {Login{}, "-" + strings.Repeat("x", 100_000) + "\r\n", wire.ErrUpstreamReply, false},
		"it says too much":     {Login{}, wire.Pong + wire.Pong, wire.ErrUpstreamReply, false},
		"it loads":             {Login{ClientSettings: ClientSettings{DB: 3}}, loading + wire.Pong, loading, false},
		"it is busy":           {Login{ClientSettings: ClientSettings{DB: 3}}, "-BUSY Redis is busy\r\n" + wire.Pong, "-BUSY Redis is busy\r\n", false},
		"no such database":     {Login{ClientSettings: ClientSettings{DB: 3}}, string(wire.ErrDatabaseIndex) + wire.Pong, wire.ErrUpstreamRefused, false},
		"a login is missed":    {Login{ClientSettings: ClientSettings{DB: 3}}, noAuth + noAuth, wire.ErrUpstreamRefused, false},
		"nothing is allowed":   {Login{}, noAuth, wire.ErrUpstreamRefused, false},
		"no such protocol":     {Login{ClientSettings: ClientSettings{Version: wire.RESP3}}, "-NOPROTO\r\n" + wire.Pong, wire.ErrUpstreamProtocol, false},
		"a wrong password":     {Login{Password: "pw"}, wrong + noAuth, wire.ErrUpstreamRefused, false},
		"the client's":         {Login{Claim: said}, wrong, wrong, true},
		"the client's default": {Login{Claim: &Claim{Sure: true}}, noAuth, noAuth, true},
		"a claim while full":   {Login{Claim: said}, full, full, false},
	} {
		r := open(t, &row.login, row.answer)
		if r.failure == nil {
			t.Errorf("%s: there is a connection", name)
		} else if r.failure.Reply != row.reply || r.failure.Rejected != row.rejected || r.failure.Err == nil {
			t.Errorf("%s: %q, rejected %v, %v", name, r.failure.Reply, r.failure.Rejected, r.failure.Err)
		}
	}
}

// An upstream that answers PING with an error is usable. One that wants a login waits
// for the client's, and has refused what came before.
func TestLoginOfNobody(t *testing.T) {
	if r := open(t, &Login{}, "-LOADING Redis is loading\r\n"); r.failure != nil || !r.known {
		t.Errorf("while it loads: known %v, %+v", r.known, r.failure)
	}
	r := open(t, &Login{ClientSettings: ClientSettings{DB: 4}, Claim: &Claim{}}, strings.Repeat("-NOAUTH Authentication required.\r\n", 2))
	if r.failure != nil || r.known {
		t.Fatalf("known %v, %+v", r.known, r.failure)
	}
	r.Close()
	if got := r.commands(); got != "PING,SELECT 4" {
		t.Errorf("the upstream is sent %q", got)
	}
}
