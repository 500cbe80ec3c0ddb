package proxy

import (
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

// listedClient returns the fields of the first line of CLIENT LIST with a client of this name,
// and their names in order.
func listedClient(t *testing.T, list, name string) (fields map[string]string, order []string) {
	t.Helper()
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name="+name+" ") {
			continue
		}
		fields = map[string]string{}
		for _, field := range strings.Fields(line) {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = value
			order = append(order, key)
		}
		return fields, order
	}
	t.Fatalf("%s is not in %q", name, list)
	return nil, nil
}

// lookAt asks another connection for the line of the client with this name.
func lookAt(t *testing.T, other *testClient, name string) (fields map[string]string, order []string) {
	t.Helper()
	other.send("CLIENT LIST\r\n")
	return listedClient(t, other.values(1), name)
}

// CLIENT LIST has Redis's fields in Redis's order, and in them what Redis would say.
func TestClientListIsAsRedis(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	for name, steps := range map[string][]string{
		"a name":           {"GET a\r\n"},
		"a database":       {"SELECT 3\r\n", "GET a\r\n"},
		"RESP3":            {"HELLO 3\r\n", "PING\r\n"},
		"a transaction":    {"MULTI\r\n", "GET a\r\n", "GET b\r\n"},
		"it is over":       {"MULTI\r\n", "GET a\r\n", "EXEC\r\n"},
		"a keyless one":    {"MULTI\r\n", "PING\r\n"},
		"subscriptions":    {"SUBSCRIBE a b\r\n", "PSUBSCRIBE x*\r\n"},
		"sharded":          {"SSUBSCRIBE a\r\n"},
		"tracking":         {"HELLO 3\r\n", "CLIENT TRACKING ON\r\n"},
		"broadcast":        {"HELLO 3\r\n", "CLIENT TRACKING ON BCAST PREFIX a\r\n"},
		"tracking off":     {"HELLO 3\r\n", "CLIENT TRACKING ON\r\n", "CLIENT TRACKING OFF\r\n"},
		"no eviction":      {"CLIENT NO-EVICT on\r\n"},
		"monitor":          {"MONITOR\r\n"},
		"an unknown one":   {"NOSUCH a\r\n"},
		"a subcommand":     {"OBJECT HELP\r\n"},
		"a name in HELLO":  {"GET a\r\n", "HELLO 2 SETNAME subject\r\n"},
		"a later database": {"GET a\r\n", "SELECT 5\r\n"},
	} {
		direct, through := dialTest(t, "unix", redis.Socket), p.dial(t)
		look, lookThrough := dialTest(t, "unix", redis.Socket), p.dial(t)
		for _, client := range []*testClient{direct, through} {
			client.ask("CLIENT SETNAME subject\r\n", wire.OK)
			for _, step := range steps {
				client.send(step)
				client.values(1)
			}
		}
		want, wantOrder := lookAt(t, look, "subject")
		if want["flags"] = strings.ReplaceAll(want["flags"], "U", ""); want["flags"] == "" { // U: a Unix socket
			want["flags"] = "N"
		}
		var got map[string]string
		var order []string
		eventually(t, name+": the command is shown", func() bool {
			got, order = lookAt(t, lookThrough, "subject")
			return got["cmd"] == want["cmd"]
		})
		for _, field := range []string{"name", "flags", "db", "sub", "psub", "ssub", "multi", "user", "redir", "resp", "events"} {
			if got[field] != want[field] {
				t.Errorf("%s: %s=%s, and Redis says %s", name, field, got[field], want[field])
			}
		}
		if !slices.Equal(order, wantOrder) && !slices.Equal(order, append(wantOrder, "lib-name", "lib-ver")) { // Redis 7.0 has no libraries
			t.Errorf("%s: the fields are %q, and Redis's are %q", name, order, wantOrder)
		}
		for _, client := range []*testClient{direct, through, look, lookThrough} {
			_ = client.Close()
		}
		eventually(t, "the clients are gone", func() bool { return p.sessionCount() == 0 && redis.Settle(t) == 1 })
	}
}

// Errors and replies without an id are Redis's, byte for byte.
func TestClientCommandsAnswerAsRedis(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	for _, line := range []string{
		"CLIENT LIST TYPE foo", "CLIENT LIST TYPE replica", "CLIENT LIST TYPE master", "CLIENT LIST TYPE", "CLIENT LIST TYPE normal x", "CLIENT LIST FOO", "CLIENT LIST ID", "CLIENT LIST ID a",
		"CLIENT LIST ID 0 -1 99999", "CLIENT LIST ID 99999 a", "CLIENT INFO x", "CLIENT ID x", "CLIENT GETREDIR x", "CLIENT GETREDIR",
		"CLIENT KILL", "CLIENT KILL foo", "CLIENT KILL 1.2.3.4:5", "CLIENT KILL ID", "CLIENT KILL ID x", "CLIENT KILL ID 0", "CLIENT KILL ID 99999", "CLIENT KILL FOO bar",
		"CLIENT KILL TYPE foo", "CLIENT KILL TYPE master", "CLIENT KILL TYPE slave", "CLIENT KILL USER nobody", "CLIENT KILL USER default ID 99999", "CLIENT KILL ADDR x", "CLIENT KILL ADDR 1:2 LADDR 3:4",
		"CLIENT KILL SKIPME maybe ID 3", "CLIENT KILL ID 99998 ID 99999", "CLIENT KILL ID 3 TYPE", "CLIENT KILL TYPE pubsub SKIPME no", "CLIENT KILL TYPE normal ID 99999 SKIPME no",
		"CLIENT UNBLOCK 99999", "CLIENT UNBLOCK x", "CLIENT UNBLOCK 99999 maybe", "CLIENT TRACKINGINFO", "CLIENT TRACKING ON REDIRECT 99999", "CLIENT TRACKING ON REDIRECT x",
		"CLIENT TRACKING ON OPTIN\r\nCLIENT CACHING YES\r\nCLIENT TRACKINGINFO\r\nCLIENT TRACKINGINFO\r\nGET k\r\nCLIENT TRACKINGINFO",
		"HELLO 3\r\nCLIENT TRACKING ON OPTOUT NOLOOP\r\nCLIENT CACHING NO\r\nCLIENT TRACKINGINFO\r\nPING\r\nCLIENT TRACKINGINFO",
		"HELLO 3\r\nCLIENT TRACKINGINFO", "HELLO 3\r\nCLIENT LIST ID 99999", "CLIENT KILL ID 1 LADDR", "CLIENT SETNAME a\r\nGET k\r\nCLIENT SETNAME b\r\nCLIENT GETNAME",
		"SUBSCRIBE a\r\nCLIENT LIST", "CLIENT REPLY OFF\r\nCLIENT KILL ID x\r\nCLIENT REPLY ON",
	} {
		compareWithRedis(t, redis, p, line+"\r\n")
	}
}

// MAXAGE came with Redis 7.4, whose errors these are.
func TestClientKillMaxAge(t *testing.T) {
	p := startTestProxy(t, nil)
	client, victim := p.dial(t), p.dial(t)
	victim.ask("PING\r\n", wire.Pong)
	client.ask("CLIENT KILL MAXAGE x\r\n", "-ERR maxage is not an integer or out of range\r\n")
	client.ask("CLIENT KILL MAXAGE 0\r\n", "-ERR maxage should be greater than 0\r\n")
	client.ask("CLIENT KILL MAXAGE 100000\r\n", ":0\r\n")
	client.ask("CLIENT KILL MAXAGE 9223372036854775807\r\n", ":0\r\n")
	victim.ask("PING\r\n", wire.Pong)
	eventually(t, "the victim is older than a second", func() bool {
		client.send("CLIENT KILL MAXAGE 1\r\n")
		return client.values(1) == ":1\r\n"
	})
	victim.expectEnd("")
}

// idOf asks a client for its id.
func (c *testClient) idOf() int {
	c.t.Helper()
	c.send("CLIENT ID\r\n")
	id, err := strconv.Atoi(strings.Trim(c.values(1), ":\r\n"))
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// Every filter of CLIENT KILL finds its clients, and nobody else.
func TestClientKillFilters(t *testing.T) {
	redis := proxytest.StartRedis(t)
	users := config.Auth{Password: proxytest.Password, May: config.RightBoth, Users: []config.User{{Name: "bob", Password: "pw", May: config.RightLocks}}}
	p := startTestProxy(t, redis, func(c *testConfig) { c.Users = config.NewAccounts(users, 0) })
	for name, filter := range map[string]func(victim *testClient) string{
		"id":         func(v *testClient) string { return "ID " + strconv.Itoa(v.idOf()) },
		"address":    func(v *testClient) string { return "ADDR " + v.LocalAddr().String() },
		"user":       func(*testClient) string { return "USER bob" },
		"all":        func(*testClient) string { return "TYPE normal" },
		"no keeping": func(*testClient) string { return "SKIPME yes" },
		"both":       func(v *testClient) string { return "LADDR " + v.RemoteAddr().String() + " USER bob" },
		"old form":   func(v *testClient) string { return v.LocalAddr().String() },
	} {
		operator, victim, subscriber := p.dial(t), p.dial(t), p.dial(t)
		operator.ask("AUTH "+proxytest.Password+"\r\n", wire.OK)
		subscriber.ask("AUTH "+proxytest.Password+"\r\nSUBSCRIBE c\r\n", wire.OK+"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		victim.ask("AUTH bob pw\r\n", wire.OK)
		want, others := ":1\r\n", name != "no keeping"
		switch name {
		case "old form":
			want = wire.OK
		case "no keeping":
			want = ":2\r\n"
		}
		operator.ask("CLIENT KILL "+filter(victim)+"\r\n", want)
		victim.expectEnd("")
		operator.send("CLIENT LIST\r\n")
		if list := operator.values(1); strings.Contains(list, "user=bob") || strings.Contains(list, " sub=1 ") != others {
			t.Errorf("%s: afterwards there are %q", name, list)
		}
		if others {
			operator.ask("CLIENT KILL TYPE pubsub\r\n", ":1\r\n")
		}
		subscriber.expectEnd("")
		operator.ask("CLIENT KILL "+operator.LocalAddr().String()+"\r\nPING\r\n", wire.OK)
		operator.expectEnd("")
		eventually(t, "all are gone", func() bool { return p.sessionCount() == 0 })
	}
}

// A user without both rights sees itself, and nobody else.
func TestClientCommandsNeedRights(t *testing.T) {
	p := startWithUsers(t, proxytest.StartRedis(t))
	for _, name := range []string{"locker", "reader"} {
		client := p.dial(t)
		client.ask("CLIENT LIST\r\n", string(wire.ErrNoAuth))
		client.ask("AUTH "+name+" pw\r\nCLIENT LIST\r\nCLIENT KILL ID 1\r\n", wire.OK+string(wire.ErrNoPermCommand("client|list"))+string(wire.ErrNoPermCommand("client|kill")))
		client.idOf()
		client.send("CLIENT INFO\r\n")
		if fields, _ := listedClient(t, client.values(1), ""); fields["user"] != name || fields["cmd"] != "client|info" {
			t.Errorf("it sees %q", fields)
		}
	}
	boss := p.dial(t)
	boss.ask("AUTH alice pw\r\nCLIENT KILL ID 99999\r\n", wire.OK+":0\r\n")
}

// CLIENT KILL ends a wait for the lock masters and one at the upstream at once. REDLOCK CLIENTS
// shows both.
func TestClientKillEndsWaits(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	waitsOn := func(name string) string {
		list := p.clients.Known()
		return list[slices.IndexFunc(list, func(info events.ClientInfo) bool { return info.Name == name })].WaitsOn
	}
	locker, blocked, operator := p.dial(t), p.dial(t), p.dial(t)
	locker.ask("CLIENT SETNAME locker\r\n", wire.OK)
	blocked.ask("CLIENT SETNAME blocked\r\n", wire.OK)
	locker.send("GET lock:slow\r\n")
	<-p.locks.entered
	blocked.send("BLPOP none 0\r\n")
	eventually(t, "both wait", func() bool {
		one, _ := lookAt(t, operator, "locker")
		other, _ := lookAt(t, operator, "blocked")
		return waitsOn("locker") == "locks" && one["cmd"] == "get" && waitsOn("blocked") == "upstream" && other["cmd"] == "blpop" && other["flags"] == "b"
	})
	operator.ask("CLIENT KILL SKIPME yes\r\n", ":2\r\n")
	<-p.locks.left
	locker.expectEnd("")
	blocked.expectEnd("")
	if on := waitsOn(""); on != "nobody" {
		t.Errorf("the operator waits for %s", on)
	}
}

// An id that is repeated makes no second line.
func TestClientListShowsEachIDOnce(t *testing.T) {
	client := startTestProxy(t, nil).dial(t)
	id := strconv.Itoa(client.idOf())
	client.send("CLIENT LIST ID 99999" + strings.Repeat(" "+id, 1000) + "\r\n")
	if list := client.values(1); strings.Count(list, "id="+id+" ") != 1 {
		t.Errorf("%.500q", list)
	}
}

// A session that only locks or names itself is listed, although the upstream does not know it.
// Names that it sets later are seen, and an open upstream gets them.
func TestClientListShowsWhatIsSetLater(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client, operator := p.dial(t), p.dial(t)
	client.ask("CLIENT SETINFO LIB-NAME lettuce\r\nCLIENT SETNAME first\r\nSET lock:a 1 NX\r\n", wire.OK+wire.OK+wire.OK)
	if fields, _ := lookAt(t, operator, "first"); fields["lib-name"] != "lettuce" || fields["addr"] != client.LocalAddr().String() || fields["laddr"] != p.address {
		t.Errorf("it is shown as %q", fields)
	}
	client.ask("GET none\r\nCLIENT SETNAME second\r\nCLIENT SETINFO LIB-VER 7\r\nSELECT 4\r\n", "$-1\r\n"+wire.OK+wire.OK+wire.OK)
	if fields, _ := lookAt(t, operator, "second"); fields["lib-ver"] != "7" || fields["db"] != "4" {
		t.Errorf("later it is shown as %q", fields)
	}
	if list := redis.Ask(t, "CLIENT LIST"); !strings.Contains(list, "name=second ") {
		t.Errorf("the upstream knows %q", list)
	}
	client.ask("RESET\r\nCLIENT SETNAME third\r\n", wire.Reset+wire.OK)
	if fields, _ := lookAt(t, operator, "third"); fields["lib-ver"] != "" || fields["db"] != "0" {
		t.Errorf("after RESET it is shown as %q", fields)
	}
}

// CLIENT ID is HELLO's id, and the one in CLIENT LIST. TRACKING REDIRECT names it to the
// upstream by the upstream's own id.
func TestTrackingRedirectMapsIDs(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	for range 5 {
		redis.Dial(t) // so that the ids differ
	}
	target, reader, writer := p.dial(t), p.dial(t), p.dial(t)
	id := strconv.Itoa(target.idOf())
	target.send("HELLO\r\n")
	if hello := target.values(1); !strings.Contains(hello, "$2\r\nid\r\n:"+id+"\r\n") {
		t.Errorf("HELLO says %q, CLIENT ID %s", hello, id)
	}
	target.send("SUBSCRIBE __redis__:invalidate\r\n")
	target.values(1)
	reader.ask("CLIENT TRACKING ON REDIRECT "+id+"\r\nCLIENT GETREDIR\r\nGET k\r\n", wire.OK+":"+id+"\r\n$-1\r\n")
	reader.send("CLIENT TRACKINGINFO\r\n")
	if info := reader.values(1); !regexp.MustCompile(`redirect\r\n:` + id + `\r\n`).MatchString(info) {
		t.Errorf("TRACKINGINFO says %q, want %s", info, id)
	}
	writer.ask("SET k v\r\n", wire.OK)
	target.expect("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n")
	reader.ask("CLIENT TRACKING ON REDIRECT 4711\r\n", "-ERR The client ID you want redirect to does not exist\r\n")
	reader.ask("CLIENT GETREDIR\r\nCLIENT TRACKING OFF\r\nCLIENT GETREDIR\r\n", ":"+id+"\r\n"+wire.OK+":-1\r\n")
	reader.ask("CLIENT TRACKING ON REDIRECT "+strconv.Itoa(reader.idOf())+"\r\n", wire.OK)
}

// CLIENT UNBLOCK names a client by the proxy's id, too.
func TestClientUnblockMapsIDs(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	blocked, operator := p.dial(t), p.dial(t)
	id := strconv.Itoa(blocked.idOf())
	blocked.send("BLPOP none 0\r\n")
	eventually(t, "it is blocked and woken", func() bool {
		operator.send("CLIENT UNBLOCK " + id + "\r\n")
		return operator.values(1) == ":1\r\n"
	})
	blocked.expect("*-1\r\n")
}

// With auth: upstream, the upstream decides who may list and kill. CLIENTS and SLOWLOG of
// REDLOCK show other clients, too.
func TestClientCommandsNeedRightsAtUpstream(t *testing.T) {
	redis := proxytest.StartRedis(t)
	redis.Ask(t, "ACL SETUSER plain on >pw ~* &* +@all -@admin")
	redis.Ask(t, "ACL SETUSER boss on >pw ~* &* +@all")
	p := startTestProxy(t, redis, func(c *testConfig) { c.Users = config.NewAccounts(config.Auth{Upstream: true}, 0) }, withConsole)
	plain, boss := p.dial(t), p.dial(t)
	plain.ask("AUTH plain pw\r\n", wire.OK)
	boss.ask("AUTH boss pw\r\n", wire.OK)
	for _, command := range []string{"CLIENT LIST", "CLIENT KILL ID 1", "REDLOCK CLIENTS", "REDLOCK SLOWLOG GET"} {
		plain.send(command + "\r\n")
		if refusal := plain.values(1); !strings.HasPrefix(refusal, "-NOPERM ") {
			t.Errorf("%s: %q", command, refusal)
		}
	}
	plain.ask("REDLOCK STATUS\r\n", readyLine)
	boss.ask("REDLOCK SLOWLOG LEN\r\n", ":0\r\n")
	boss.ask("CLIENT KILL USER nosuch\r\nCLIENT KILL USER plain\r\n", "-ERR No such user 'nosuch'\r\n:1\r\n")
	plain.expectEnd("")
}

// EXEC's replies come from one server, and no server knows the clients of the proxy.
func TestClientListInTransaction(t *testing.T) {
	p := startTestProxy(t, proxytest.StartRedis(t))
	for _, before := range []string{"", "GET k\r\n", "GET lock:a\r\n"} {
		client := p.dial(t)
		client.ask("MULTI\r\n"+before, wire.OK+strings.Repeat(wire.Queued, strings.Count(before, "GET")))
		client.ask("CLIENT LIST\r\nEXEC\r\n", string(wire.ErrNotInMulti)+string(wire.ErrExecAbort))
	}
}

// A client over a Unix socket has the socket's path as both addresses, as in Redis.
func TestClientListOverUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "clients") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := dir + "/s"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p := startTestProxy(t, nil)
	conn := dialTest(t, "unix", path)
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.clients.Welcome(accepted)
	_ = listener.Close()
	conn.ask("CLIENT SETNAME me\r\n", wire.OK)
	if fields, _ := lookAt(t, conn, "me"); fields["addr"] != path+":0" || fields["laddr"] != path+":0" {
		t.Errorf("it is shown as %q", fields)
	}
}
