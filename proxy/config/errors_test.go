package config

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/endpoint"
)

// base is a valid file of eight lines. A row replaces one of its lines or adds lines to
// its end.
const goodConfig = `listen: 127.0.0.1:6380
admin: 127.0.0.1:9380
upstream: redis://10.0.0.9:6379
masters: [redis://10.0.0.1, redis://10.0.0.2, redis://10.0.0.3]
locks: [match: "lock:*"]
restart_delay: 30s
max_quarantine: 10m
master_timeout: 50ms
`

const (
	wantURL        = "redis://[user:password@]host[:port], rediss:// for TLS, unix:///path, sentinel://[user:password@]host[:port],host[:port]/NAME, sentinels:// for TLS"
	wantTop        = "listen, unix_permissions, reuse_port, tls, admin, admin_hosts, upstream, masters, upstream_connections, locks, ignore, master_timeout, retry, clock_drift, restart_delay, max_quarantine, heal, auth, auth_cache, limits, log"
	wantListen     = "allowed: host:port, such as 127.0.0.1:6380 or 0.0.0.0:6380, or unix:/path"
	wantDuration   = "is not a duration; write a number with a unit, such as 50ms, 30s, 10m or 1h"
	wantLeastDelay = "is too short; it must be 2.04s at least with master_timeout 50ms and clock_drift 0.01, because a proxy may take that long to write a master's marker, and the master must not vote before that"
	wantSize       = "is not a size; write a number of bytes or use Redis's units, such as 64kb, 512mb or 1gb (k, m and g count in thousands)"
	escapes        = " (in user and password write / as %2F, # as %23, ? as %3F, % as %25)"
)

type wrongLine struct{ line, want string }

// wrongByItself has wrong keys, and values that are wrong whatever else the file and the
// machine have. Editors refuse them, too (TestSchema).
var wrongByItself = []wrongLine{
	// the file's form
	{"lisen: 1", `f.yaml:9: "lisen" is not known here; did you mean listen? allowed: ` + wantTop},
	{"LISTEN: 1", `f.yaml:9: "LISTEN" is not known here; did you mean listen? allowed: ` + wantTop},
	{"tsl: {}", `f.yaml:9: "tsl" is not known here; did you mean tls? allowed: ` + wantTop},
	{"user: []", `f.yaml:9: "user" is not known here; did you mean auth.users? allowed: ` + wantTop},
	{"port: 1", `f.yaml:9: "port" is not known here; did you mean listen? allowed: ` + wantTop},
	{"retry: {cuont: 1}", `f.yaml:9: retry: "cuont" is not known here; did you mean count? allowed: count, delay`},
	{"colour: red", `f.yaml:9: "colour" is not known here; allowed: ` + wantTop},
	{"? [a]\n: b", `f.yaml:9: a key is not known here; allowed: ` + wantTop},
	{"redis://x:hunter2@y: 1", `f.yaml:9: a key is not known here; allowed: ` + wantTop},
	{"retry: {count: 1, tries: 2}", `f.yaml:9: retry: "tries" is not known here; allowed: count, delay`},
	{"auth: {hunter2}", `f.yaml:9: auth: a key is not known here; allowed: password, password_file, password_env, may, users`},
	{"locks: [{match: a, ttl: 1s}]", `f.yaml:5: locks[0]: "ttl" is not known here; did you mean default_ttl? allowed: match, db, default_ttl, wait, renew, on_disconnect, companions`},
	{"retry: 3", `f.yaml:9: retry: must be a mapping with the keys count, delay`},
	{"auth: hunter2", `f.yaml:9: auth: must be the word upstream or a mapping with the keys password, password_file, password_env, may, users`},
	{"clock_drift: [1]", `f.yaml:9: clock_drift: must be a single value, not a list or a mapping`},
	{"auth: {upstream: true}", `f.yaml:9: auth: a key is not known here; allowed: password, password_file, password_env, may, users`},
	{"ignore: [a, '']", `f.yaml:9: ignore[1]: is empty; write a Redis glob over the whole key, such as "idempotency:*"`},
	{"ignore: a", `f.yaml:9: ignore: must be a list of Redis globs such as ["idempotency:*"]`},
	{"auth_cache: -1s", `f.yaml:9: auth_cache: "-1s" is out of range; allowed: 0s to 24h`},
	{"auth: {password: [hunter2]}", `f.yaml:9: auth.password: must be a single value, not a list or a mapping`},
	{"auth: {password: }", `f.yaml:9: auth.password: has no value; write one (the texts ~ and null need quotes), or leave the key out`},
	{"auth: {password: &hunter2 }", `f.yaml:9: auth.password: is a YAML anchor; a value that begins with & needs quotes`},
	{"auth: {password_file: hunter2}", `f.yaml:9: auth.password_file: is not an absolute path; write one that begins with /`},
	{"auth: {password_env: hunter2}", `f.yaml:9: auth.password_env: is not the name of an environment variable in capitals, such as REDIS_PASSWORD`},
	{"auth: {may: none}", `f.yaml:9: auth.may: "none" is not allowed here; allowed: locks, upstream, both`},
	{"auth: {users: alice}", `f.yaml:9: auth.users: must be a list of users such as - {name: app, password_file: /run/secrets/app, may: locks}`},
	{"auth: {users: [alice]}", `f.yaml:9: auth.users[0]: must be a mapping with the keys password, password_file, password_env, name, may`},
	{"auth: {users: [{hunter2: x}]}", `f.yaml:9: auth.users[0]: a key is not known here; allowed: password, password_file, password_env, name, may`},
	{"auth: {users: [{password: hunter2}]}", `f.yaml:9: auth.users[0]: has no name`},
	{"auth: {users: [{name: a, password: hunter2, may: all}]}", `f.yaml:9: auth.users[0].may: "all" is not allowed here; allowed: locks, upstream, both`},
	{"listen: &a :1\nlog: {format: *a }", `f.yaml:1: listen: is a YAML anchor; a value that begins with & needs quotes
f.yaml:2: log.format: is a YAML alias; write the value out, or quote it if it begins with *`},
	{"tls:", `f.yaml:9: tls: has no value; write one (the texts ~ and null need quotes), or leave the key out`},
	{"log: {<<: {level: info}}", `f.yaml:9: log: a key is not known here; allowed: level, format`},
	// addresses
	{"listen: 6380", `f.yaml:1: listen: "6380" is not an address; ` + wantListen},
	{"listen: redis://u:hunter2@h", `f.yaml:1: listen: the value is not an address; ` + wantListen},
	{"listen: localhost:redis", `f.yaml:1: listen: "localhost:redis" is not an address with a port from 0 to 65535; ` + wantListen},
	{"listen: unix:run/sock", `f.yaml:1: listen: the socket's path must begin with one /, as in unix:/run/redlock-proxy.sock`},
	{"listen: unix:///run/sock", `f.yaml:1: listen: the socket's path must begin with one /, as in unix:/run/redlock-proxy.sock`},
	{"listen: []", `f.yaml:1: listen: must be a single value, not a list or a mapping`},
	{"admin: unix:/run/sock", `f.yaml:2: admin: "unix:/run/sock" is not an address with a port from 0 to 65535; allowed: host:port, such as 127.0.0.1:6380 or 0.0.0.0:6380`},
	{"admin_hosts: a", `f.yaml:9: admin_hosts: must be a list of host names such as [locks.example.com]`},
	{"admin: null", `f.yaml:2: admin: has no value; write one (the texts ~ and null need quotes), or leave the key out`},
	{"unix_permissions: 0855", `f.yaml:9: unix_permissions: "0855" is not an octal mode from 0600 to 0777; the proxy itself must be able to read and write`},
	{"unix_permissions: 0070", `f.yaml:9: unix_permissions: "0070" is not an octal mode from 0600 to 0777; the proxy itself must be able to read and write`},
	{"reuse_port: true", `f.yaml:9: reuse_port: "true" is not allowed here; allowed: no, yes`},
	{"tls: {cert: x}", `f.yaml:9: tls: "cert" is not known here; did you mean cert_file? allowed: listen, cert_file, key_file, ca_cert_file, auth_clients`},
	{"tls: {listen: unix:/x}", `f.yaml:9: tls.listen: "unix:/x" is not an address with a port from 0 to 65535; allowed: host:port, such as 127.0.0.1:6380 or 0.0.0.0:6380`},
	{"tls: {cert_file: x}", `f.yaml:9: tls.cert_file: is not an absolute path; write one that begins with /`},
	{"tls: {listen: 127.0.0.1:1, auth_clients: maybe}", `f.yaml:9: tls.auth_clients: "maybe" is not allowed here; allowed: no, optional, yes`},
	// server URLs
	{"upstream: 10.0.0.1:6379", `f.yaml:3: upstream: not a server URL; allowed: ` + wantURL + escapes + `; or the word embedded or none`},
	{"upstream: localhost", `f.yaml:3: upstream: not a server URL; allowed: ` + wantURL + `; or the word embedded or none`},
	{"upstream: [redis://h]", `f.yaml:3: upstream: must be a single value, not a list or a mapping`},
	// masters
	{"masters: redis://u:hunter2@h", `f.yaml:4: masters: must be the word embedded or a list of server URLs`},
	{"masters: {a: redis://u:hunter2@h}", `f.yaml:4: masters: must be the word embedded or a list of server URLs`},
	{"masters: []", `f.yaml:4: masters: the list is empty; at least 1 master is needed, and 3 or 5 to survive the loss of one or two`},
	{"masters: [embedded]", `f.yaml:4: masters[0]: embedded cannot stand in a list; write masters: embedded for five of them`},
	{"masters: [redis://a, none]", `f.yaml:4: masters[1]: not a server URL; allowed: ` + wantURL},
	{"masters: [redis://a, {redis://u:hunter2@h: 6379}]", `f.yaml:4: masters[1]: must be a single value, not a list or a mapping`},
	// locks
	{"locks: lock", `f.yaml:5: locks: must be a list of rules such as - match: "lock:*", or the word learn`},
	{"locks: []", `f.yaml:5: locks: the list is empty; without a rule no key is a lock (write - match: "lock:*", or the word learn to find out which keys are)`},
	{"locks: [a]", `f.yaml:5: locks[0]: must be a mapping with the keys match, db, default_ttl, wait, renew, on_disconnect, companions`},
	{`locks: [{match: a, companions: queue}]`, `f.yaml:5: locks[0].companions: must be a list of Redis globs such as ["queue:*"]`},
	{`locks: [{match: a, companions: [b, ""]}]`, `f.yaml:5: locks[0].companions[1]: is empty; write a Redis glob over the whole key or channel`},
	{"locks: [{db: 1}]", `f.yaml:5: locks[0]: has no match; write a Redis glob over the whole key, such as match: "lock:*"`},
	{`locks: [{match: ""}]`, `f.yaml:5: locks[0].match: is empty; write a Redis glob over the whole key, such as "lock:*"`},
	{`locks: [{match: a, db: all}]`, `f.yaml:5: locks[0].db: "all" is not a whole number; allowed: 0 to 2147483647`},
	{`locks: [{match: a, default_ttl: -1s}]`, `f.yaml:5: locks[0].default_ttl: "-1s" is out of range; allowed: 0s to 8760h`},
	{`locks: [{match: a, renew: -1s}]`, `f.yaml:5: locks[0].renew: "-1s" is out of range; allowed: 0s to 8760h`},
	{`locks: [{match: a, on_disconnect: delete}]`, `f.yaml:5: locks[0].on_disconnect: "delete" is not allowed here; allowed: keep, release`},
	// numbers and words
	{"master_timeout: 50", `f.yaml:8: master_timeout: "50" ` + wantDuration + `; allowed: 1ms to 1m`},
	{"restart_delay: 30", `f.yaml:6: restart_delay: "30" ` + wantDuration + `; allowed: up to 24h`},
	{"restart_delay: -1h", "f.yaml:6: restart_delay: -1h " + wantLeastDelay},
	{"heal: {every: -1s}", `f.yaml:9: heal.every: "-1s" is out of range; allowed: 0s to 24h`},
	{"heal: 1m", `f.yaml:9: heal: must be a mapping with the keys every, rate, size`},
	{"retry: {count: many}", `f.yaml:9: retry.count: "many" is not a whole number; allowed: 0 to 100`},
	{"clock_drift: 1%", `f.yaml:9: clock_drift: "1%" is not a number; allowed: 0 to 0.5`},
	{"clock_drift: NaN", `f.yaml:9: clock_drift: "NaN" is out of range; allowed: 0 to 0.5`},
	{"limits: {clients: 0}", `f.yaml:9: limits.clients: "0" is out of range; allowed: 1 to 1000000`},
	{"limits: {bulk: 512 MB}", `f.yaml:9: limits.bulk: "512 MB" ` + wantSize + `; allowed: 1mb to 4gb`},
	{"limits: {bulk: mb}", `f.yaml:9: limits.bulk: "mb" ` + wantSize + `; allowed: 1mb to 4gb`},
	{"limits: {bulk: 1bk}", `f.yaml:9: limits.bulk: "1bk" ` + wantSize + `; allowed: 1mb to 4gb`},
	{"limits: {idle: " + strings.Repeat("9", 70) + "}", `f.yaml:9: limits.idle: the value ` + wantDuration + `; allowed: 0s to 8760h`},
	{"log: {level: trace}", `f.yaml:9: log.level: "trace" is not allowed here; allowed: debug, info, warn, error`},
	{"log: {format: xml}", `f.yaml:9: log.format: "xml" is not allowed here; allowed: text, json`},
	{"log: {format: []}", `f.yaml:9: log.format: must be a single value, not a list or a mapping`},
}

// wrongTogether has what only the proxy can know: what is wrong beside other keys, on this
// machine, as YAML, or out of the range of a text such as 50ms.
var wrongTogether = []wrongLine{
	{"log: {level: info}\nlog: {format: text}", `f.yaml:10: log: duplicate key, first set on line 9`},
	{"limits: {idle: 0s, idle: 1s}", `f.yaml:9: limits.idle: duplicate key, first set on line 9`},
	{"auth: {password: !hunter2 x}", `f.yaml:9: auth.password: is a YAML tag; a value that begins with ! needs quotes`},
	{"auth: {password: hunter2, password_file: /x}", `f.yaml:9: auth.password_file: is set besides password; use only one of them`},
	{"auth: {password_file: /nowhere/x}", `f.yaml:9: auth.password_file: cannot be read: open /nowhere/x: no such file or directory`},
	{"auth: {password_file: /dev/null}", `f.yaml:9: auth.password_file: /dev/null is empty`},
	{"auth: {password_file: /dev/zero}", `f.yaml:9: auth.password_file: /dev/zero is longer than 65536 bytes`},
	{"auth: {password_env: NO_SUCH_VARIABLE}", `f.yaml:9: auth.password_env: the environment variable NO_SUCH_VARIABLE is not set, or is empty`},
	{"auth: {may: locks, users: [{name: a, password: hunter2}]}", `f.yaml:9: auth.may: applies to the user default, who does not exist without auth.password`},
	{"auth: {users: [{name: alice}]}", `f.yaml:9: auth.users[0]: alice has no password; write password, password_file or password_env`},
	{"auth: {users: [{name: default, password: hunter2}]}", `f.yaml:9: auth.users[0].name: default is the user of auth.password; write that password there`},
	{"auth: {users: [{name: a b, password: hunter2}]}", `f.yaml:9: auth.users[0].name: has a space or a control character in it, or is longer than 128 bytes`},
	{"auth:\n  users:\n    - {name: a, password: hunter2}\n    - {name: a, password: hunter3}", `f.yaml:12: auth.users[1]: a is already the user on line 11; give each user one entry`},
	{"auth: {password: *hunter2 }", `f.yaml: not valid YAML: a value that begins with * needs quotes`},
	{"limits: &a {}\nlog: *a", "f.yaml:9: limits: is a YAML anchor; a value that begins with & needs quotes\n" +
		"f.yaml:10: log: is a YAML alias; write the value out, or quote it if it begins with *"},
	{"auth: {password: hunter2", `f.yaml:8: not valid YAML near this line: did not find expected ',' or '}'`},
	{"tls:\n\tlisten: :1", "f.yaml:10: not valid YAML near this line: found character that cannot start any token; indent with spaces, not with tabs, and quote a value that begins with @, ` or %"},
	{"tls:\n  listen: @hunter2", "f.yaml:10: not valid YAML near this line: found character that cannot start any token; indent with spaces, not with tabs, and quote a value that begins with @, ` or %"},
	{"tls:\n  listen: :1\n\tcert_file: /x", `f.yaml:10: not valid YAML near this line: found a tab character that violates indentation; indent with spaces`},
	{"---\na: b", `f.yaml:9: a second YAML document (after ---); allowed: one`},
	{"---\na: [", `f.yaml:10: not valid YAML near this line: did not find expected node content`},
	{"listen: localhost:65536", `f.yaml:1: listen: "localhost:65536" is not an address with a port from 0 to 65535; ` + wantListen},
	{"admin: 0.0.0.0:6380", `f.yaml:2: admin: 0.0.0.0:6380 is the listen address; the two need different ports`},
	{"admin: localhost:6380", `f.yaml:2: admin: localhost:6380 is the listen address; the two need different ports`},
	{"admin_hosts: [a, 'a:1']", `f.yaml:9: admin_hosts[1]: is not a host name; write each name in full, without a scheme and a port, such as locks.example.com`},
	{`listen: ""`, `f.yaml:1: listen: is empty and tls.listen is not set, so no client could connect`},
	{"tls: {listen: 127.0.0.1:1}", `f.yaml:9: tls.listen: needs cert_file and key_file`},
	{"tls: {cert_file: /x, key_file: /y}", `f.yaml:9: tls: has files and no address; add tls.listen, such as 0.0.0.0:6390`},
	{"tls:\n  listen: 127.0.0.1:1\n  key_file: /y", `f.yaml:11: tls.key_file: needs cert_file`},
	{"tls:\n  listen: 127.0.0.1:1\n  key_file: /y\n  cert_file: /x", `f.yaml:12: tls.cert_file: cannot be read: open /x: no such file or directory`},
	{"tls: {listen: 127.0.0.1:1, cert_file: /x, key_file: /y, auth_clients: optional}", `f.yaml:9: tls.auth_clients: needs ca_cert_file to verify the clients' certificates`},
	{"upstream: rediss://:hunter2@h?cert_file=/x", `f.yaml:3: upstream: the URL's option cert_file needs key_file`},
	{"masters: [\"sentinel://a,b/m\", redis://c, sentinel://B:26379/m]", `f.yaml:4: masters[2]: m@B:26379 is the same server as m@a:26379 on line 4; one server has one vote`},
	{"masters: [\"sentinel://a/m?db=1\"]", `f.yaml:4: masters[0]: a master's URL must not name a database: a lock in database n lives in database n of every master`},
	{"upstream: redis://localhost:6380", `f.yaml:3: upstream: localhost:6380 is the proxy's own listen address`},
	{"masters: [redis://a/1]", `f.yaml:4: masters[0]: a master's URL must not name a database: a lock in database n lives in database n of every master`},
	{"masters: [redis://u:hunter2@A:6379, redis://b, redis://a]", `f.yaml:4: masters[2]: a:6379 is the same server as A:6379 on line 4; one server has one vote`},
	{"masters: [redis://localhost:7000, redis://127.0.0.1:7000]", `f.yaml:4: masters[1]: 127.0.0.1:7000 is the same server as localhost:7000 on line 4; one server has one vote`},
	{"masters: [unix:///a, unix:///a]", `f.yaml:4: masters[1]: /a is the same server as /a on line 4; one server has one vote`},
	{"masters: [redis://127.0.0.1:6380]", `f.yaml:4: masters[0]: 127.0.0.1:6380 is the proxy's own listen address`},
	{`locks: [{match: b}, {match: a, default_ttl: 1ms}]`, `f.yaml:5: locks[1].default_ttl: 1ms is too short, and no lock would ever be granted; it must be 3ms at least with clock_drift 0.01, and well above the time in which the masters answer`},
	{`locks: [{match: a, wait: 61m}]`, `f.yaml:5: locks[0].wait: "61m" is out of range; allowed: 0s to 1h`},
	{`locks: [{match: a, renew: 0s}]`, `f.yaml:5: locks[0].renew: must be longer than 0s; leave the key out, and no lock is renewed`},
	{`locks: [{match: a}, {match: b}, {match: a, db: 3}]`, `f.yaml:5: locks[2]: is never used: the rule on line 5 matches the same keys first`},
	{"master_timeout: 0s", `f.yaml:8: master_timeout: "0s" is out of range; allowed: 1ms to 1m`},
	{"restart_delay: 25h", `f.yaml:6: restart_delay: "25h" is out of range; allowed: up to 24h`},
	{"restart_delay: 2s", `f.yaml:6: restart_delay: 2s ` + wantLeastDelay},
	{"restart_delay: 1s", `f.yaml:6: restart_delay: 1s ` + wantLeastDelay},
	{"restart_delay: 11m", `f.yaml:7: max_quarantine: 10m is shorter than restart_delay (11m); raise the one or lower the other`},
	{"master_timeout: 1m", `f.yaml:6: restart_delay: 30s ` + strings.NewReplacer("2.04s", "1m2.73s", "50ms", "1m").Replace(wantLeastDelay)},
	{"max_quarantine: 169h", `f.yaml:7: max_quarantine: "169h" is out of range; allowed: 100ms to 168h`},
	{"retry: {delay: 61s}", `f.yaml:9: retry.delay: "61s" is out of range; allowed: 0s to 1m`},
	{"limits: {bulk: 1kb}", `f.yaml:9: limits.bulk: "1kb" is out of range; allowed: 1mb to 4gb`},
	{"limits: {bulk: 9223372036854775807gb}", `f.yaml:9: limits.bulk: "9223372036854775807gb" is out of range; allowed: 1mb to 4gb`},
}

// There is one row for every message, with the wrong line and the whole error.
func TestConfigErrors(t *testing.T) {
	if _, err := parseConfig("f.yaml", []byte(goodConfig)); err != nil {
		t.Fatal(err)
	}
	for _, row := range slices.Concat(wrongByItself, wrongTogether) {
		_, err := parseConfig("f.yaml", []byte(withLine(row.line)))
		if err == nil {
			t.Errorf("%s: accepted", row.line)
			continue
		}
		if err.Error() != row.want {
			t.Errorf("%s\n got %s\nwant %s", row.line, err, row.want)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a secret: %s", row.line, err)
		}
	}
}

// withLine replaces the line with the same key.
func withLine(line string) string {
	key, _, _ := strings.Cut(line, ":")
	var out []string
	found := false
	for old := range strings.Lines(goodConfig) {
		if strings.HasPrefix(old, key+":") {
			out, found = append(out, line+"\n"), true
			continue
		}
		out = append(out, old)
	}
	if !found {
		out = append(out, line+"\n")
	}
	return strings.Join(out, "")
}

// rightFiles are right, and not as the others are.
var rightFiles = []string{
	"upstream: none\nmasters: embedded\nlisten: unix:/s\n",
	"upstream: redis://h\nlocks: learn\n", // without masters
	"upstream: redis://h\nmasters: embedded\nauth: upstream\nauth_cache: 1m\n",
	"upstream: none\nmasters: embedded\nauth: {password: 0123, may: locks, users: [{name: 1, password: true}]}\n",
	goodValues,
}

func TestRightFiles(t *testing.T) {
	for _, text := range rightFiles {
		if _, err := parseConfig("f", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestConfigErrorsOfWholeFiles(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", "f: the file is empty; it needs at least the keys upstream and masters"},
		{"# nothing\n", "f: the file is empty; it needs at least the keys upstream and masters"},
		{"just words", "f:1: must be a mapping with the keys " + wantTop},
		{"listen: :1\n", "f: upstream: is missing; write the URL of your Redis, none, or embedded to try it out\n" +
			"f: masters: is missing; list the URLs of the lock masters, or write embedded to try it out"},
		{"upstream: unix:///s\nmasters: [unix:///s]\nlisten: unix:/s\n", "f:1: upstream: /s is the proxy's own listen address\n" +
			"f:2: masters[0]: /s is the proxy's own listen address"},
		{"listen: unix:/s\nupstream: none\nmasters: embedded\nreuse_port: yes\n", "f:4: reuse_port: cannot be used with the unix: socket in listen, which one process has for itself; give each process a listen address of its own, or use a TCP address"},
		{"upstream: none\nmasters: embedded\nlocks: learn\n", "f:3: locks: cannot be learned without an upstream, which would serve the keys; write - match: \"*\", because every key is a lock there"},
		{"upstream: redis://h\nlocks: lern\n", "f: masters: is missing; list the URLs of the lock masters, or write embedded to try it out\n" +
			`f:2: locks: must be a list of rules such as - match: "lock:*", or the word learn`},
		{"upstream: none\nmasters: embedded\nauth: upstream\n", "f:3: auth: is set to upstream, but there is no upstream"},
		{"upstream: none\nmasters: embedded\nlocks:\n  - {match: a, users: [default]}\n", "f:4: locks[0].users: " + noRuleUsers},
		// the line of the other key, if this one has its default
		{"upstream: none\nmasters: embedded\nrestart_delay: 11m\n", "f:3: max_quarantine: 10m is shorter than restart_delay (11m); raise the one or lower the other"},
		{"upstream: none\nmasters: embedded\nmaster_timeout: 1m\n", "f:3: restart_delay: 30s " + strings.NewReplacer("2.04s", "1m2.73s", "50ms", "1m").Replace(wantLeastDelay)},
		// every problem is told in one run
		{"upstream: x\nmasters: [y]\nlog: {level: z}\n", "f:1: upstream: not a server URL; allowed: " + wantURL + "; or the word embedded or none\n" +
			"f:2: masters[0]: not a server URL; allowed: " + wantURL + "\n" +
			`f:3: log.level: "z" is not allowed here; allowed: debug, info, warn, error`},
	} {
		if _, err := parseConfig("f", []byte(row.text)); err == nil || err.Error() != row.want {
			t.Errorf("%q\n got %v\nwant %s", row.text, err, row.want)
		}
	}
}

func TestListenCollisions(t *testing.T) {
	for _, row := range []struct {
		url, listen string
		want        bool
	}{
		{"redis://localhost:1", "127.0.0.1:1", true},
		{"redis://127.0.0.2:1", "127.0.0.1:1", false},
		{"redis://127.0.0.2:1", "0.0.0.0:1", true},
		{"redis://[::1]:1", ":1", true},
		{"redis://10.0.0.1:1", ":1", false}, // it may be another machine's address
		{"redis://10.0.0.1:1", "10.0.0.1:1", true},
		{"redis://localhost:1", "localhost:2", false},
		{"unix:///a", "unix:/a", true},
		{"unix:///a", "localhost:1", false},
		{"redis://a", "unix:/a", false},
	} {
		server, err := endpoint.Parse(row.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := reaches(server, row.listen); got != row.want {
			t.Errorf("%s reaches %s: %v", row.url, row.listen, got)
		}
	}
}
