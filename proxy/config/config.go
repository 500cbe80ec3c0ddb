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

// Config is a whole, checked configuration; Load makes one. Its tags are the
// file's keys (yaml.go). It may be printed: its servers print as their names.
type Config struct {
	Source string // the file it came from, or -demo
	Listen string `yaml:"listen"` // host:port or unix:/path; empty: only over TLS
	// UnixPermissions are of the socket that Listen may be.
	UnixPermissions fs.FileMode `yaml:"unix_permissions"`
	TLS             TLS         `yaml:"tls"`
	Admin           string      `yaml:"admin"` // host:port; empty: no admin server
	Upstream        Upstream    `yaml:"upstream"`
	Masters         Masters     `yaml:"masters"`
	Locks           route.Rules `yaml:"locks" list:"rules such as - match: \"lock:*\""` // at least one; the first that matches counts

	MasterTimeout time.Duration `yaml:"master_timeout" range:"1ms 1m"`
	Retry         Retry         `yaml:"retry"`
	ClockDrift    float64       `yaml:"clock_drift" range:"0 0.5"`
	RestartDelay  time.Duration `yaml:"restart_delay" range:"100ms 24h"`
	MaxQuarantine time.Duration `yaml:"max_quarantine" range:"100ms 168h"`

	Auth Auth `yaml:"auth"`
	// AuthCache is for how long a user whom the upstream has accepted may use
	// locks while the upstream is away.
	AuthCache time.Duration `yaml:"auth_cache" range:"0s 24h"`
	Limits    Limits        `yaml:"limits"`
	Log       Log           `yaml:"log"`

	// NewSet is the operator's word (-new) that no lock can be held on these
	// masters yet, so that they need not first prove how long they have been up.
	// It is no key of the file.
	NewSet bool

	places map[string]int // the line of each key in Source, by its path (masters[2])
}

// DemoSource is the Source of a configuration without a file.
const DemoSource = "-demo"

// Toys is what has to be said wherever somebody might take toys for servers;
// empty: there are none.
func (c *Config) Toys() []string {
	var toys []string
	if c.Masters.Embedded {
		toys = append(toys, "demo: the masters are embedded in this process: a toy for trying the proxy out, which forgets all locks when it ends")
	}
	if c.Upstream.Kind == UpstreamEmbedded {
		toys = append(toys, "demo: the upstream is embedded in this process: a toy for trying the proxy out, which forgets everything when it ends")
	}
	return toys
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
	UpstreamEmbedded                     // a toy in this process
	UpstreamNone                         // the proxy serves locks only
)

// DefaultDatabases is how many databases a client can select where the upstream
// does not tell its number: Redis's own.
const DefaultDatabases = 16

// Masters are the servers that hold the locks.
type Masters struct {
	Embedded bool // embeddedMasters toys in this process
	Servers  []endpoint.Endpoint
}

// Count is N.
func (m Masters) Count() int {
	if m.Embedded {
		return EmbeddedMasters
	}
	return len(m.Servers)
}

// UnmarshalText reads a URL or one of two words.
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
	if err := u.Server.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; or the word embedded or none", err)
	}
	return nil
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

func (m Masters) Names() []string {
	names := make([]string, len(m.Servers))
	for i, server := range m.Servers {
		names[i] = server.Name
	}
	return names
}

// Quorum is how many of them decide.
func (m Masters) Quorum() int { return m.Count()/2 + 1 }

// Retry bounds the repetitions of a ballot that split its votes.
type Retry struct {
	Count int           `yaml:"count" range:"0 100"`
	Delay time.Duration `yaml:"delay" range:"0s 1m"` // each waits a random time up to this
}

// Auth is what a client must say first. Without password and users that is
// nothing, unless the upstream is to judge.
type Auth struct {
	Password endpoint.Secret `yaml:"password" also:"password_file password_env"` // of the user default; empty with users: there is no such user
	May      Rights          `yaml:"may"`                                        // of the user default
	Users    []User          `yaml:"users" list:"users such as - {name: app, password_file: /run/secrets/app, may: locks}"`

	// Upstream: the upstream's users are the proxy's, and it judges their
	// passwords.
	Upstream bool
}

// User is a client's name, password and rights.
type User struct {
	Password endpoint.Secret `yaml:"password" also:"password_file password_env"`
	Name     string          `yaml:"name"`
	May      Rights          `yaml:"may"`
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level" oneof:"debug info warn error"`
	Format string `yaml:"format" oneof:"text json"`
}

// EmbeddedMasters is how many masters `masters: embedded` means: the smallest
// set that still decides with two of them away.
const EmbeddedMasters = 5

// DefaultFile is read when no file is named.
const DefaultFile = "config.yaml"

// Demo is a configuration without a file, that of the shipped config.yaml:
// everything inside the process, for trying it out. It has the value of each key
// that a file leaves out, and embedded servers.
func Demo() *Config {
	return &Config{
		Source:          DemoSource,
		Listen:          "127.0.0.1:6380",
		UnixPermissions: 0o700,
		Admin:           "127.0.0.1:9380",
		Upstream:        Upstream{Kind: UpstreamEmbedded},
		Masters:         Masters{Embedded: true},
		Locks:           route.Rules{{Match: "lock:*", DB: route.AnyDB}},
		MasterTimeout:   50 * time.Millisecond,
		Retry:           Retry{Count: 3, Delay: 200 * time.Millisecond},
		ClockDrift:      0.01,
		RestartDelay:    30 * time.Second,
		MaxQuarantine:   10 * time.Minute,
		Auth:            Auth{May: RightBoth},
		AuthCache:       5 * time.Minute,
		Limits:          DefaultLimits(),
		Log:             Log{Level: "info", Format: "text"},
	}
}

// Load reads and checks the configuration file at path. An empty path means
// config.yaml in the working directory. What is wrong in the file is a
// an Error.
func Load(path string) (*Config, error) {
	file := cmp.Or(path, DefaultFile)
	text, err := os.ReadFile(file)
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, noConfiguration()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return parseConfig(file, text)
}

// noConfiguration says what to do where no file is named and none is there. Toys
// in its place would grant every lock from a memory of their own.
func noConfiguration() error {
	file := DefaultFile
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	return fmt.Errorf(`there is no configuration: %s does not exist, and no -config FILE is given
to serve locks, write your servers into it (upstream and masters; what ships as config.yaml shows every key) and test it with -check
to try the proxy out, start it with -demo: embedded servers, which forget all locks when it ends`, file)
}
