package console

import (
	"context"
	"log/slog"
	"slices"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/scan"
)

// Command is one REDLOCK command. The console does not keep its slices.
type Command struct {
	DB      int
	Args    [][]byte        // with REDLOCK itself
	Route   route.Route     // with the command's specification
	Version wire.Version    // of the protocol that the client speaks
	User    *config.Account // the sender's user; it has the right to send the command
	Client  slog.LogValuer  // the sender, for the log
	From    *events.Client  // the sender, for the journal
}

// Config gives a Console its access to the rest of the process. Many goroutines may call
// the functions at the same time.
type Config struct {
	Active  *config.Active
	Masters func() events.State
	Journal *events.Journal
	Clients func() []events.ClientInfo // those of this process, the oldest first
	Reader  Reader
	Locks   Locks
	Log     *slog.Logger
	Unruled *unruled.Watch
	Ready   func() string // says whether locks can be decided, and why not; it may have several lines

	// The Page has these, too.
	Version  string
	Draining func() bool
	Notes    func() []string         // lines for operators
	Upstream func() (problem string) // why it cannot be used; empty if it can, or if there is none
}

// Locks performs commands on lock keys. lock.Plane is the one in service.
type Locks interface {
	Do(ctx context.Context, dst []byte, call lock.Command) []byte
}

// Reader reads what masters hold. scan.Reader is the one in service.
type Reader interface {
	Look(db int, keys [][]byte) [][]scan.Copy
	Outstanding(db int, key []byte) []bool
	Walk(ctx context.Context, wants func(db int, key []byte) bool, each func(db int, key []byte, copies []scan.Copy) (more bool)) (all bool)
}

// Console answers REDLOCK. A process has one.
type Console struct {
	Config
	walking chan struct{} // holds one element while somebody lists locks
}

// New makes a Console. All of c must be given, but for a Console without a Page what only that has.
func New(c Config) *Console { return &Console{c, make(chan struct{}, 1)} }

// Do performs one command and appends its one reply to dst. ctx ends when the client has
// gone.
func (c *Console) Do(ctx context.Context, dst []byte, call Command) []byte {
	spec := call.Route.Spec
	known := subcommands()
	i := slices.IndexFunc(known, func(s subcommand) bool { return s.name == spec.Name })
	switch {
	case !spec.ArityOK(len(call.Args)):
		return append(dst, wire.ErrArity(spec.Name)...)
	case i < 0:
		return append(dst, wire.ErrUnknownSubcommand(call.Args)...)
	}
	return appendReply(dst, known[i].answer(c, ctx, call), call.Version)
}
