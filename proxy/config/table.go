package config

import (
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/proxy/route"
)

// A setting is one key of the file, and table is the one place that lists the keys. The
// reader of the file, Demo, PlanReload, Show, Hash, the handbook's table and
// deploy/config.schema.json are made from it. So a new key needs a row here, a field in
// Config, and the code that uses the field.
type setting struct {
	name    string // its path, such as retry.count; locks[].match is a key of each element of locks
	place   any    // points to the field
	initial string // the value without the key, as the file would have it; empty: none
	allowed string // a range: least and most; the words, for a bool those for false and true; a form, see below; for a list what it must be
	traits  trait
	means   string
}

// The forms of a text.
const (
	anAddress         = "host:port"
	anAddressOrSocket = "host:port unix:/path"
	aPath             = "/path"
)

// A trait says what a reload does with a setting, and how the file may have it. What a
// reload changes applies at once, unless a trait says something else.
type trait uint8

const (
	atRestart   trait = 1 << iota // a reload refuses another value
	atCommand                     // from the next command of each client on
	atLogin                       // from the next login on
	asPlanned                     // plan.go says what a reload does
	shared                        // in Hash: proxies over the same masters should have the same value
	needed                        // the file must have it
	alternative                   // another way to write the row before, with the same place
)

// table returns all settings in the order in which they are shown. The rows point to the
// fields of c. The rows of the elements of lists point to rule and user.
func table(c *Config, rule *route.Rule, user *User) []setting {
	l := &c.Limits
	return []setting{
		{"listen", &c.Listen, "127.0.0.1:6380", anAddressOrSocket, atRestart, "where clients connect: `host:port`, or `unix:/path`; `\"\"` if all clients use TLS"},
		{"unix_permissions", &c.UnixPermissions, "0700", "", atRestart, "who may connect to a `unix:` socket, as for chmod"},
		{"reuse_port", &c.ReusePort, "no", "no yes", atRestart, "`yes`: [several processes](INSTALL.md#sizing-proxies) of one user may listen on `listen` and `tls.listen` (Linux, TCP). Give each its own `-admin`"},
		{"tls.listen", &c.TLS.Listen, "", anAddress, atRestart, "where clients connect over TLS (1.2 or newer): `host:port`"},
		{"tls.cert_file", &c.TLS.CertFile, "", aPath, 0, "the proxy's certificate with its chain. The files are read again every 30 s and at `kill -HUP`. Broken files are reported, and the last good ones stay in use"},
		{"tls.key_file", &c.TLS.KeyFile, "", aPath, 0, "the key of the certificate"},
		{"tls.ca_cert_file", &c.TLS.CACertFile, "", aPath, 0, "the authority that signs the clients' certificates"},
		{"tls.auth_clients", &c.TLS.AuthClients, "", "no optional yes", 0, "whether a client must show a certificate: `yes` (the default with a `ca_cert_file`), `optional` or `no`"},
		{"admin", &c.Admin, "127.0.0.1:9380", anAddress, atRestart, "HTTP for operators: [the page](RUN.md#the-page), metrics, probes and [JSON](#the-state-as-json). It has no password: let only operators reach it. `\"\"` turns it off, and then there is no `-reload` and no `-healthcheck`"},
		{"admin_hosts", &c.AdminHosts, "[]", "host names such as [locks.example.com]", 0, "host names to which the `admin` address answers, besides `localhost`, IP addresses and the name in `admin`"},
		{"upstream", &c.Upstream, "embedded", "", needed | asPlanned, "the ordinary Redis: `redis://user:password@host:port/db`, `rediss://` (TLS), `unix:///path`, `sentinel://`; `embedded`; `none` ([for locks only](INSTALL.md#for-locks-only))"},
		{"masters", &c.Masters, "embedded", "server URLs", needed | asPlanned | shared, "the servers that hold locks: `embedded`, or a list of URLs. Use three or five; an even number gains nothing"},
		{"upstream_connections", &c.UpstreamConnections, "shared", "own shared", atCommand, "`shared`: clients share a few connections to the upstream until one needs its own: [what that means](#shared-upstream-connections). `own`: each client has its own"},
		{"locks", &c.Locks, "lock:*", "rules such as - match: \"lock:*\", or the word learn", atCommand | shared, "a list of rules, or the word `learn`: [no key is a lock](INSTALL.md#rules-from-traffic), and no `masters` are needed"},
		{"locks[].match", &rule.Match, "", "", needed, "a Redis glob over the whole key; the first rule that matches wins"},
		{"locks[].db", &rule.DB, "", "0 2147483647", 0, "only in this database; left out: in every database"},
		{"locks[].default_ttl", &rule.DefaultTTL, "0s", "0s 8760h", 0, "TTL for locks taken without one. A TTL that can never be granted (below 3ms; more with a larger `clock_drift`) is refused"},
		{"locks[].wait", &rule.Wait, "0s", "0s 1h", 0, "hold a refused acquire back until the lock is free, at most for this time: [waiting for a lock](#waiting-for-a-lock). 0: answer at once"},
		{"locks[].renew", &rule.Renew, "", "0s 8760h", 0, "extend a lock while the connection that took it is open; no extension begins later than this after the acquire: [locks that last as long as a connection](#locks-that-last-as-long-as-a-connection)"},
		{"locks[].on_disconnect", &rule.Release, "keep", "keep release", 0, "`release`: delete a lock when its client ends the connection; `keep`: leave it its TTL"},
		{"locks[].companions", &rule.Companions, "", "Redis globs such as [\"queue:*\"]", 0, "globs: keys and channels that are no locks but go where these locks go"},
		{"ignore", &c.Ignore, "[]", "Redis globs such as [\"idempotency:*\"]", 0, "globs of keys that are no locks although they [look like locks](RUN.md#locks-that-no-rule-matches)"},
		{"master_timeout", &c.MasterTimeout, "50ms", "1ms 1m", shared, "how long a ballot waits for a master. With its repetitions a lock command should end within 1.5s, because many clients wait for 2s: `-check` warns otherwise"},
		{"retry.count", &c.Retry.Count, "3", "0 100", shared, "how often a split vote is repeated"},
		{"retry.delay", &c.Retry.Delay, "200ms", "0s 1m", shared, "the longest random wait before each repetition"},
		{"clock_drift", &c.ClockDrift, "0.01", "0 0.5", shared, "the share of a TTL by which clocks may run apart; it is subtracted from every validity"},
		{"restart_delay", &c.RestartDelay, "30s", " 24h", shared, "the shortest quarantine of a master that may have forgotten locks; 2.04s at least, and more with a larger `clock_drift` or a `master_timeout` above 500ms"}, // checks.go has the least one
		{"max_quarantine", &c.MaxQuarantine, "10m", "100ms 168h", shared, "the longest quarantine, when longer TTLs were granted. Locks that live longer are not covered; they are counted and cause a warning"},
		{"heal.every", &c.Heal.Every, "0s", "0s 24h", 0, "[write locks to masters that lack them](RUN.md#healing): pause between two looks at all keys; 0: never"},
		{"heal.rate", &c.Heal.Rate, "1000", "1 1000000", 0, "the most keys that healing looks at in a second"},
		{"heal.size", &c.Heal.Size, "1mb", "1kb 512mb", 0, "larger keys are not healed, nor those above half of `limits.lock_reply`"},
		{"auth", &c.Auth.Upstream, "", " upstream", 0, "the keys below, or the word `upstream`: [the users are the upstream's](#the-upstreams-users)"},
		{"auth.password", &c.Auth.Password, "", "", atLogin, "the password that clients must send with AUTH or HELLO as user `default`"},
		{"auth.password_file", &c.Auth.Password, "", "", alternative, "or the file with the password; one line end at its end is cut"},
		{"auth.password_env", &c.Auth.Password, "", "", alternative, "or the name of the environment variable with the password"},
		{"auth.may", &c.Auth.May, "both", "locks upstream both", atCommand, "what the user `default` may use: `locks`, `upstream` or `both`"},
		{"auth.users", &c.Auth.Users, "", "users such as - {name: app, password_file: /run/secrets/app, may: locks}", atLogin, "more users. With users and without `auth.password` there is no user `default`"},
		{"auth.users[].password", &user.Password, "", "", 0, "the user's password"},
		{"auth.users[].password_file", &user.Password, "", "", alternative, "or the file with the password"},
		{"auth.users[].password_env", &user.Password, "", "", alternative, "or the name of the environment variable with the password"},
		{"auth.users[].name", &user.Name, "", "", needed, "the name that the user sends with AUTH or HELLO"},
		{"auth.users[].may", &user.May, "both", "locks upstream both", 0, "what the user may use: `locks`, `upstream` or `both`"},
		{"auth_cache", &c.AuthCache, "5m", "0s 24h", 0, "with `auth: upstream`: while the upstream is unreachable, users that it accepted in this time may go on using locks; 0: never"},
		{"limits.clients", &l.Clients, "10000", "1 1000000", atCommand, "connections at once; one more gets `-ERR max number of clients reached`"},
		{"limits.login_time", &l.LoginTime, "1m", "0s 8760h", atCommand, "a client that must log in and has not done so in this time is disconnected; 0: never. Where no login is needed, `limits.idle` closes connections that send nothing"},
		{"limits.idle", &l.Idle, "0s", "0s 8760h", atCommand, "a client that is silent for this time is disconnected; 0: never"},
		{"limits.unread_time", &l.UnreadTime, "5m", "0s 8760h", atCommand, "a client that reads none of its replies for this time is disconnected; 0: never"},
		{"limits.bulk", &l.Bulk, "512mb", "1mb 4gb", atCommand, "the longest argument; `-ERR Protocol error: invalid bulk length`. Lock commands have a smaller limit, `limits.lock_command`"},
		{"limits.multibulk", &l.Multibulk, "2147483647", "1024 2147483647", atCommand, "the most arguments of a command; `-ERR Protocol error: invalid multibulk length`"},
		{"limits.inline", &l.Inline, "64kb", "1kb 1mb", atCommand, "the longest inline command, and the longest line with a length; `-ERR Protocol error: too big inline request`"},
		{"limits.login_multibulk", &l.LoginMultibulk, "10", "7 2147483647", atCommand, "the most arguments before AUTH; `-ERR Protocol error: unauthenticated multibulk length`"}, // HELLO with AUTH and SETNAME takes 7
		{"limits.login_bulk", &l.LoginBulk, "16kb", "1kb 1gb", atCommand, "the longest argument before AUTH; `-ERR Protocol error: unauthenticated bulk length`"},
		{"limits.query", &l.Query, "1gb", "1mb 64gb", atCommand, "the longest unfinished command; a longer one closes the connection, like `client-query-buffer-limit`"},
		{"limits.output", &l.Output, "32mb", "64kb 64gb", atCommand, "messages from the masters that a subscriber has not read; more close the connection, like `client-output-buffer-limit pubsub`"},
		{"limits.lock_command", &l.LockCommand, "1mb", "1kb 64mb", atCommand, "the longest lock command, with all its arguments; the lock commands of a transaction together; what is remembered of the keys of WATCH on all masters"},
		{"limits.lock_keys", &l.LockKeys, "1000", "16 1000000", atCommand, "the most lock keys of one command, and of all commands of a transaction, where a command without keys counts as one key; more are refused like a long command"},
		{"limits.lock_reply", &l.LockReply, "4mb", "64kb 256mb", atCommand, "the longest answer of a master to a lock command: the reply and, for most commands, what their keys held before and after, so several times the longest value"},
		{"limits.transaction", &l.Transaction, "512mb", "64kb 64gb", atCommand, "commands queued after MULTI before the first with a key; beyond it the command is refused and EXEC aborts"},
		{"limits.subscriptions", &l.Subscriptions, "100000", "1 2147483647", atCommand, "subscriptions of one client to channels of locks and to patterns"},
		{"limits.scripts", &l.Scripts, "64mb", "1mb 64gb", atCommand, "script texts remembered for EVALSHA, none above `limits.lock_command`; the least recently used text is dropped first, and those that have run on lock keys last"},
		{"limits.slow_command", &l.SlowCommand, "100ms", "0s 8760h", atCommand, "nothing is refused: a lock command that took this long or longer is in `REDLOCK SLOWLOG`, and counted by `redlock_limit_reached_total`; 0: none is"},
		{"limits.memory", &l.Memory, "2gb", "8mb 1024gb", atCommand, "everything above that is held for all clients, and what is remembered of them. Beyond it a command is refused"},
		{"log.level", &c.Log.Level, "info", "debug info warn error", 0, "`debug` logs each lock command with its first key and its client, never a value"},
		{"log.format", &c.Log.Format, "text", "text json", atRestart, "of the lines of the log"},
	}
}

// settings returns the rows of c's own fields, each field once.
func (c *Config) settings() []setting {
	return slices.DeleteFunc(table(c, new(route.Rule), new(User)), func(s setting) bool {
		return s.traits&alternative != 0 || strings.Contains(s.name, "[]")
	})
}

// ofRule returns the rows of a rule, and ofUser those of a user.
func ofRule(rule *route.Rule) []setting {
	return below("locks[].", table(new(Config), rule, new(User)))
}

func ofUser(user *User) []setting {
	return below("auth.users[].", table(new(Config), new(route.Rule), user))
}

func below(prefix string, rows []setting) []setting {
	return slices.DeleteFunc(rows, func(s setting) bool { return !strings.HasPrefix(s.name, prefix) })
}

// reset gives the settings their initial values.
func reset(rows []setting) {
	for _, s := range rows {
		if s.initial == "" {
			continue
		}
		if err := s.set(s.initial); err != nil {
			panic(s.name + ": " + err.Error())
		}
	}
}

// Demo is the configuration without a file. It equals the shipped config.yaml: all servers are embedded
// in the process, for trying the proxy out. It also has the value of each key that a file leaves out.
func Demo() *Config {
	c := &Config{Source: DemoSource}
	reset(c.settings())
	return c
}

// LimitNames are the names of all limits, in the order of the table.
func LimitNames() (names []string) {
	for _, s := range new(Config).settings() {
		if name, isLimit := strings.CutPrefix(s.name, "limits."); isLimit {
			names = append(names, name)
		}
	}
	return names
}

// Shown is a setting as text. It is never a secret.
type Shown struct{ Name, Value string }

// Show returns the settings for -check. Unless all is true, it leaves out those with their
// initial values that a file need not have.
func (c *Config) Show(all bool) (list []Shown) {
	initial := Demo().settings()
	for i, s := range c.settings() {
		value := s.text()
		switch {
		case !all && s.traits&needed == 0 && value == initial[i].text():
		case s.name == "masters":
			list = append(list, Shown{s.name, fmt.Sprintf("%s (quorum %d)", value, c.Masters.Quorum())})
		case s.name == "locks" && !c.Learns():
			for i, rule := range c.Locks {
				list = append(list, Shown{elementKey(s.name, i), DescribeRule(rule)})
			}
		case s.name == "tls.cert_file" && c.TLS.Files != nil:
			list = append(list, Shown{s.name, c.TLS.describeCertificate()})
		default:
			list = append(list, Shown{s.name, value})
		}
	}
	return list
}
