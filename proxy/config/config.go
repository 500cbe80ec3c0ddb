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

// Config is a whole, checked configuration. Load makes one. table.go says what each key
// is. It may be printed, because servers print as their names.
type Config struct {
	Source string // the file, or -demo

	Listen, Admin       string // empty: not there
	UnixPermissions     fs.FileMode
	ReusePort           bool
	TLS                 TLS
	AdminHosts          []string
	Upstream            Upstream
	UpstreamConnections string // ConnectionsOwn or ConnectionsShared
	Masters             Masters
	Locks               route.Rules // none: Learns
	Ignore              []string

	MasterTimeout, RestartDelay, MaxQuarantine time.Duration
	Retry                                      Retry
	ClockDrift                                 float64
	Heal                                       Heal

	Auth      Auth
	AuthCache time.Duration
	Limits    Limits
	Log       Log

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
	Count int
	Delay time.Duration
}

// Heal says how the locks that a majority holds are written to masters that lack them.
type Heal struct {
	Every time.Duration // 0: nothing is healed
	Rate  int
	Size  int64
}

// Auth says how clients log in. If it has neither a password nor users, and Upstream is
// false, clients need no login.
type Auth struct {
	Password endpoint.Secret // of the user default; if empty and Users is not: there is no such user
	May      Rights          // of the user default
	Users    []User
	Upstream bool // the upstream has the users and judges their passwords
}

// User is a client's name, password and rights.
type User struct {
	Password endpoint.Secret
	Name     string
	May      Rights
}

// Log says which lines are logged and in which format.
type Log struct{ Level, Format string }

// EmbeddedMasters is the number of masters for `masters: embedded`. It is the smallest
// set that still decides with two of them unreachable.
const EmbeddedMasters = 5

// DefaultFile is read if no file is named.
const DefaultFile = "config.yaml"

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
