package endpoint

import (
	"strings"
	"testing"
)

// One row for every message: the URL that is wrong and the whole error.
func TestURLErrors(t *testing.T) {
	const escapes = " (in user and password write / as %2F, # as %23, ? as %3F, % as %25)"
	for _, row := range []struct{ url, want string }{
		{"http://u:hunter2@h", `not a server URL; allowed: ` + urlForms},
		{"redis://u:hunter2/x@h", `not a server URL; allowed: ` + urlForms + escapes},
		{"redis://hunter2#x@h", `the URL has a # in it; write # in a password as %23`},
		{"redis://h:1/hunter2@h", `only a database number is allowed after the host, as in redis://host:6379/3` + escapes},
		{"redis://h:70000", `the URL's port is not from 1 to 65535`},
		{"redis:///1", `the URL names no host; allowed: ` + urlForms},
		{"redis://h?hunter2=1", `the URL has an unknown option; allowed after ?: db, password_file, password_env, and with rediss ca_cert_file, cert_file, key_file, server_name, skip_verify (write ? in a password as %3F)`},
		{"redis://h?db=-1", `the URL's db option is not a database number`},
		{"rediss://h?skip_verify=hunter2", `the URL's option skip_verify is neither true nor false`},
		{"sentinel://h/", `write the master's name behind the Sentinels' addresses, as the Sentinels have it: ` + sentinelForms},
		{"sentinel://h/a/1", `write the master's name behind the Sentinels' addresses, as the Sentinels have it: ` + sentinelForms},
		{"sentinel://u:hunter2@/m", `a Sentinel's address is not host or host:port with a port from 1 to 65535; allowed: ` + sentinelForms},
		{"sentinel://a,b:99999/m", `a Sentinel's address is not host or host:port with a port from 1 to 65535; allowed: ` + sentinelForms},
		{"sentinel://a,u:hunter2@b/m", `not a server URL; allowed: ` + urlForms + ` (user and password come once, before the first host; in user and password write / as %2F, # as %23, ? as %3F, % as %25, a comma as %2C)`},
		{"sentinel://a,A:26379/m", `the URL names one Sentinel twice`},
		{"sentinel://a/m#x", `the URL has a # in it; write # in a password as %23`},
		{"sentinel://a/m?ca_cert_file=/x", `the URL has an unknown option; allowed after ?: ` + sentinelOptions + `, and with sentinels ` + urlTLSOptions + ` (write ? in a password as %3F)`},
		{"sentinel://a/m?sentinel_user=hunter2", `the URL's option sentinel_user needs sentinel_password`},
		{"unix://run/sock", `a unix URL is unix:///path/to/socket, or unix://user:password@/path/to/socket`},
		{"redis://h?ca_cert_file=/x", `the URL has an unknown option; allowed after ?: db, password_file, password_env, and with rediss ca_cert_file, cert_file, key_file, server_name, skip_verify (write ? in a password as %3F)`},
		{"redis://h?db=1&db=2", `the URL's option db is given twice or is empty`},
		{"redis://h?password_env=", `the URL's option password_env is given twice or is empty`},
		{"redis://h?password_env=hunter2", `the URL's option password_env: is not the name of an environment variable in capitals, such as REDIS_PASSWORD`},
		{"redis://:hunter2@h?password_file=/x", `the URL has more than one password; use only one of user:password, password_file and password_env`},
		{"rediss://h?db=%zz", `the URL's options cannot be read; write them as ?name=value&name=value, & in a value as %26`},
		{"rediss://h?ca_cert_file=x", `the URL's option ca_cert_file is not an absolute path; write one that begins with /`},
		{"rediss://h?ca_cert_file=/nowhere/x", `the URL's option ca_cert_file cannot be read: open /nowhere/x: no such file or directory`},
		{"rediss://h?ca_cert_file=/dev/null", `the URL's option ca_cert_file /dev/null holds no certificate in PEM`},
		{"rediss://h?cert_file=/x", `the URL's option cert_file needs key_file`},
		{"rediss://h?key_file=/x", `the URL's option key_file needs cert_file`},
	} {
		_, err := Parse(row.url)
		switch {
		case err == nil:
			t.Errorf("%s: accepted", row.url)
		case err.Error() != row.want:
			t.Errorf("%s\n got %s\nwant %s", row.url, err, row.want)
		case strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: the error shows a secret: %s", row.url, err)
		}
	}
}

func TestWhatURLsSay(t *testing.T) {
	for _, row := range []struct {
		url  string
		want Endpoint
	}{
		{"redis://h", Endpoint{Network: "tcp", Address: "h:6379"}},
		{"redis://h/3", Endpoint{Network: "tcp", Address: "h:6379", DB: 3}},
		{"redis://u:p%2F@[::1]:7000/3?db=5", Endpoint{Network: "tcp", Address: "[::1]:7000", Username: "u", Password: "p/", DB: 5}},
		{"redis://:p@h?db=0", Endpoint{Network: "tcp", Address: "h:6379", Password: "p"}},
		{"unix:///3", Endpoint{Network: "unix", Address: "/3"}},
		{"unix://u:p@/run/s?db=2", Endpoint{Network: "unix", Address: "/run/s", Username: "u", Password: "p", DB: 2}},
	} {
		row.want.Name = row.want.Address
		if got, err := Parse(row.url); err != nil || got != row.want {
			t.Errorf("%s: %#v %q %q %d, %v", row.url, got, got.Username, string(got.Password), got.DB, err)
		}
	}
}
