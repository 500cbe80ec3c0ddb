package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// Config is a whole, checked configuration. Load makes one. Its tags are the file's keys
// (yaml.go). It may be printed, because servers print as their names.
type Config struct {
	Source string // the file, or -demo
	Listen string `yaml:"listen"` // host:port or unix:/path; empty: only over TLS
	// UnixPermissions are the permissions of Listen's socket, if Listen is a unix: path.
	UnixPermissions fs.FileMode `yaml:"unix_permissions"`
	// ReusePort lets several processes of the same user listen on Listen and TLS.Listen.
	ReusePort  bool     `yaml:"reuse_port" oneof:"no yes"`
	TLS        TLS      `yaml:"tls"`
	Admin      string   `yaml:"admin"`                                                     // host:port; empty: no admin server
	AdminHosts []string `yaml:"admin_hosts" list:"host names such as [locks.example.com]"` // besides localhost, IP addresses and Admin's host
	Upstream   Upstream `yaml:"upstream"`
	Masters    Masters  `yaml:"masters"`

	// UpstreamConnections says whether clients share connections to the upstream until one needs its own.
	UpstreamConnections string `yaml:"upstream_connections" oneof:"own shared"`

	Locks route.Rules `yaml:"locks" list:"rules such as - match: \"lock:*\", or the word learn"` // the first match counts; none: Learns

	// Ignore has globs: keys that are no locks although they look like locks (package unruled).
	Ignore []string `yaml:"ignore" list:"Redis globs such as [\"idempotency:*\"]"`

	MasterTimeout time.Duration `yaml:"master_timeout" range:"1ms 1m"`
	Retry         Retry         `yaml:"retry"`
	ClockDrift    float64       `yaml:"clock_drift" range:"0 0.5"`
	RestartDelay  time.Duration `yaml:"restart_delay" range:" 24h"`
	MaxQuarantine time.Duration `yaml:"max_quarantine" range:"100ms 168h"`
	Heal          Heal          `yaml:"heal"`

	Auth Auth `yaml:"auth"`
	// AuthCache is the time for which a user that the upstream has accepted may use locks
	// while the upstream is unreachable.
	AuthCache time.Duration `yaml:"auth_cache" range:"0s 24h"`
	Limits    Limits        `yaml:"limits"`
	Log       Log           `yaml:"log"`

	// NewSet is the operator's assurance (-new) that no lock can be held on these masters
	// yet. Then they need not prove how long they have been up. It is no key of the file.
	NewSet bool
	// AdminFlag is the flag -admin, which takes the place of the file's admin; empty: it was not given.
	AdminFlag string
	// DemoServers are the processes that -demo has started: the masters, and then the upstream.
	// It is no key of the file.
	DemoServers []DemoServer

	places map[string]int // the line of each key in Source, by its path, such as masters[2]
}

// A DemoServer is a process that -demo has started.
type DemoServer struct {
	Name, Address string
	PID           int
}

// DemoSource is the Source of a configuration without a file.
const DemoSource = "-demo"

// Learns tells whether the proxy only finds out which keys are locks: it has no rule, so no key is one. Then the file
// may name no masters. Embedded ones take their place, and hold nothing.
func (c *Config) Learns() bool { return len(c.Locks) == 0 }

// LearningNotice is for operators of a proxy that Learns.
const LearningNotice = "learning: no key is a lock, and the upstream gets everything; REDLOCK UNRULED and the page show the rules to write"

// EmbeddedServers returns one warning for each kind of server that is embedded or started by
// -demo, to show wherever somebody might mistake it for a real server. Otherwise it is empty.
func (c *Config) EmbeddedServers() []string {
	var warnings []string
	if c.Masters.Embedded && !c.Learns() {
		warnings = append(warnings, "demo: the masters are embedded in this process, for trying the proxy out; they forget all locks when it ends")
	}
	if c.Upstream.Kind == UpstreamEmbedded {
		warnings = append(warnings, "demo: the upstream is embedded in this process, for trying the proxy out; it forgets everything when it ends")
	}
	if len(c.DemoServers) > 0 {
		warnings = append(warnings, "demo: this process has started its masters and its upstream, for trying the proxy out; they end with it and forget everything")
	}
	return warnings
}

// Upstream is the server that gets every command without a lock key.
type Upstream struct {
	Kind   UpstreamKind
	Server endpoint.Endpoint // set for UpstreamServer
}

// UpstreamKind says where the upstream is.
type UpstreamKind uint8

// The kinds of upstream.
const (
	UpstreamServer   UpstreamKind = iota // a server with a URL
	UpstreamEmbedded                     // a server in this process, for trying the proxy out
	UpstreamNone                         // the proxy serves locks only
)

// The values of UpstreamConnections. Shared: clients share a few until one needs its own.
const (
	ConnectionsOwn    = "own"
	ConnectionsShared = "shared"
)

// DefaultDatabases is the number of databases that a client can select if the upstream's
// number is unknown. It is Redis's default.
const DefaultDatabases = 16

// Masters are the servers that hold the locks.
type Masters struct {
	Embedded bool // EmbeddedMasters servers in this process
	Servers  []endpoint.Endpoint
}

// Count is the number of masters.
func (m Masters) Count() int {
	if m.Embedded {
		return EmbeddedMasters
	}
	return len(m.Servers)
}

// UnmarshalText parses a URL, or the word embedded or none.
func (u *Upstream) UnmarshalText(text []byte) error {
	switch string(text) {
	case "embedded":
		u.Kind = UpstreamEmbedded
		return nil
	case "none":
		u.Kind = UpstreamNone
		return nil
	}
	u.Kind = UpstreamServer
	err := u.Server.UnmarshalText(text)
	if errors.Is(err, endpoint.ErrForm) {
		return fmt.Errorf("%w; or the word embedded or none", err)
	}
	return err
}

// String names the upstream without its credentials.
func (u Upstream) String() string {
	switch u.Kind {
	case UpstreamEmbedded:
		return "embedded"
	case UpstreamNone:
		return "none"
	}
	return u.Server.Name
}

// GoString keeps %#v from showing a password.
func (u Upstream) GoString() string { return u.String() }

// String names the masters without their credentials.
func (m Masters) String() string {
	if m.Embedded {
		return fmt.Sprintf("%d embedded", EmbeddedMasters)
	}
	return strings.Join(m.Names(), ", ")
}

// GoString keeps %#v from showing a password.
func (m Masters) GoString() string { return m.String() }

// Names returns the servers' names, in the order of the list.
func (m Masters) Names() []string {
	names := make([]string, len(m.Servers))
	for i, server := range m.Servers {
		names[i] = server.Name
	}
	return names
}

// Quorum is the number of masters that decide.
func (m Masters) Quorum() int { return m.Count()/2 + 1 }

// Retry bounds the repetitions of a ballot whose votes were split between clients.
type Retry struct {
	Count int           `yaml:"count" range:"0 100"`
	Delay time.Duration `yaml:"delay" range:"0s 1m"` // each repetition waits a random time up to this
}

// Heal says how the locks that a majority holds are written to masters that lack them.
type Heal struct {
	Every time.Duration `yaml:"every" range:"0s 24h"`   // pause between two passes over all keys; 0: nothing is healed
	Rate  int           `yaml:"rate" range:"1 1000000"` // keys looked at in a second, at most
	Size  int64         `yaml:"size" range:"1kb 512mb"` // bytes of a key's content; larger keys are not healed
}

// String describes it for people.
func (h Heal) String() string {
	if h.Every == 0 {
		return "off"
	}
	return fmt.Sprintf("every %s, %d keys a second, of up to %s", ShortDuration(h.Every), h.Rate, shortSize(h.Size))
}

// Auth says how clients log in. If it has neither a password nor users, and Upstream is
// false, clients need no login.
type Auth struct {
	Password endpoint.Secret `yaml:"password" also:"password_file password_env"` // of the user default; if empty and Users is not: there is no such user
	May      Rights          `yaml:"may"`                                        // of the user default
	Users    []User          `yaml:"users" list:"users such as - {name: app, password_file: /run/secrets/app, may: locks}"`

	// Upstream means that the upstream has the users and judges their passwords.
	Upstream bool
}

// User is a client's name, password and rights.
type User struct {
	Password endpoint.Secret `yaml:"password" also:"password_file password_env"`
	Name     string          `yaml:"name"`
	May      Rights          `yaml:"may"`
}

// Log says which lines are logged and in which format.
type Log struct {
	Level  string `yaml:"level" oneof:"debug info warn error"`
	Format string `yaml:"format" oneof:"text json"`
}

// EmbeddedMasters is the number of masters for `masters: embedded`. It is the smallest
// set that still decides with two of them unreachable.
const EmbeddedMasters = 5

// DefaultFile is read if no file is named.
const DefaultFile = "config.yaml"

// Demo is the configuration without a file. It equals the shipped config.yaml: all servers are embedded
// in the process, for trying the proxy out. It also has the value of each key that a file leaves out.
func Demo() *Config {
	return &Config{
		Source:          DemoSource,
		Listen:          "127.0.0.1:6380",
		UnixPermissions: 0o700,
		Admin:           "127.0.0.1:9380",
		AdminHosts:      []string{},
		Upstream:        Upstream{Kind: UpstreamEmbedded},
		Masters:         Masters{Embedded: true},

		UpstreamConnections: ConnectionsShared,

		Locks:         route.Rules{{Match: "lock:*", DB: route.AnyDB}},
		Ignore:        []string{},
		MasterTimeout: 50 * time.Millisecond,
		Retry:         Retry{Count: 3, Delay: 200 * time.Millisecond},
		ClockDrift:    0.01,
		RestartDelay:  30 * time.Second,
		MaxQuarantine: 10 * time.Minute,
		Heal:          Heal{Rate: 1000, Size: 1 << 20},
		Auth:          Auth{May: RightBoth},
		AuthCache:     5 * time.Minute,
		Limits:        DefaultLimits(),
		Log:           Log{Level: "info", Format: "text"},
	}
}

// Flags take the place of keys of the file.
type Flags struct {
	Learn bool   // as if the file had `locks: learn`
	Admin string // the admin address; empty: the file's
}

// Load reads and checks the configuration file at path. An empty path means config.yaml
// in the working directory. If there are mistakes in the file, the error is an Error.
func Load(path string, flags Flags) (*Config, error) {
	file := cmp.Or(path, DefaultFile)
	text, err := os.ReadFile(file)
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, noConfiguration()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return parse(file, text, flags)
}

// noConfiguration is the error if no file is named and the default file does not exist. Embedded
// servers are no substitute: each process would grant every lock from a memory of its own.
func noConfiguration() error {
	path, _ := filepath.Abs(DefaultFile)
	return fmt.Errorf(`there is no configuration: %s does not exist, and no -config FILE is given
to serve locks, write your servers into it (upstream and masters; what ships as config.yaml shows every key) and test it with -check
to try the proxy out, start it with -demo: it starts redis-server if that is installed, or else uses embedded servers; all locks are forgotten when it ends`, cmp.Or(path, DefaultFile))
}
