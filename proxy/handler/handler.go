package handler

import (
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

// Locks is the lock plane as commands use it. Do runs one command and Exec one transaction;
// both append the one reply to dst. Watch reads keys for WATCH, and returns an error reply
// or "". Peek reads a key's value for the proxy itself. ctx ends when the client has gone.
// No method keeps its arguments. Parks tells whether Do never blocks a task in its context:
// Do parks it, or has it leave the loop first. Overlaps tells whether Do may run beside others of the
// same client that are about other keys, and Parks, too.
type Locks interface {
	Parks(call lock.Command) bool
	Overlaps(call lock.Command) bool
	Do(ctx context.Context, dst []byte, call lock.Command) []byte
	Watch(ctx context.Context, db int, keys [][]byte) (w *redlock.Watch, refusal wire.Error)
	Exec(ctx context.Context, dst []byte, t lock.Transaction) []byte
	Peek(ctx context.Context, db int, key string) []byte
}

// Config gives a Service its access to the rest of the process. Many goroutines may call the
// functions at the same time.
type Config struct {
	Databases   func() int    // the number of the upstream's databases; 0: unknown
	Version     func() string // the version in HELLO and INFO; "": unknown
	RedlockInfo func(dst []byte) []byte
	// UpstreamAnswers counts how often the upstream has answered the proxy's own questions.
	UpstreamAnswers func() int64

	Locks   Locks
	Leases  *lease.Keeper // nil: no lock has a lease
	Scripts *lock.Scripts
	Console *console.Console // nil: REDLOCK is not supported
	Unruled *unruled.Watch   // nil: nobody looks for locks without a rule

	Subscribes pubsub.Subscribe // nil: nobody can listen to the masters
}

// A Service makes the Handler of each client, and holds the state that all of them share.
type Service struct {
	Config
	env *session.Env
	registry
	door *door

	accepted *acceptedLogins
	refusals events.Throttle // limits log lines about logins
}

// New makes the Service of the process that env belongs to, and starts the sweep. The caller must call Shutdown.
func New(env *session.Env, cfg Config) *Service {
	v := &Service{
		Config: cfg, env: env, accepted: newAcceptedLogins(), registry: registry{byID: map[int64]*Handler{}}, door: newDoor(),
	}
	v.door.sweeping.Go(v.sweepUntilStopped)
	return v
}

// timesReached is how often anybody in this process has reached the upstream.
func (v *Service) timesReached() int64 { return v.env.Reached.Load() + v.UpstreamAnswers() }

func (v *Service) shownVersion() string { return cmp.Or(v.Version(), FallbackVersion) }

// A Handler serves one client: it runs the session's task, and performs the client's commands. The
// session's goroutine calls its methods, unless they say otherwise.
type Handler struct {
	*session.Session
	service *Service

	account   atomic.Pointer[config.Account] // its user; nil: it has not logged in. Any goroutine may read it
	login     atomic.Int32                   // loginUnknown, loginRequired or loginDone
	cached    *cachedLogin                   // an earlier login that the upstream has yet to confirm
	client    upstream.ClientState
	replies   wire.ReplyMode
	lockReply []byte                       // the last reply of the masters; its buffer is reused
	leases    atomic.Pointer[lease.Holder] // nil until locks may need leases
	multi     multi
	tracking  pubsub.Tracking
	listener  atomic.Pointer[pubsub.Listener] // nil while the client wants nothing from the masters
	// outdatedAt is for subscriptions that were confirmed without the upstream, which does not know them. When
	// timesReached has come to it, the upstream is back, and the client may miss messages that are published
	// there. 0: there are none.
	outdatedAt  atomic.Int64
	monitoring  bool
	sharedWrite bool             // a write went over a shared connection, so WAIT cannot be answered
	plain       *config.Settings // isPlain by these; nil: it may not be

	// These are what others see of the client. Any goroutine may read them.
	since   time.Time
	entry   *events.Client             // among the events, which may keep it longer
	spec    atomic.Pointer[route.Spec] // of the last command; nil: there was none, or it was unknown
	onLocks atomic.Int32               // commands that the lock masters are asked
	shownMu sync.Mutex
	shown   published // only the session changes it, so it reads it without shownMu
}

func (v *Service) newHandler(running context.Context, id int64, client net.Conn) *Handler {
	h := &Handler{service: v, since: time.Now()}
	h.Session = session.New(running, v.env, id, client)
	h.forgetLogin()
	h.client = upstream.NewClientState(h.reserve, v.env.Active.Load().Upstream.DB)
	h.entry = events.NewClient(id, h.RemoteAddr().String(), h.since)
	h.shown = h.published()
	h.introduce()
	return h
}

// start has the loop serve the client to its end.
func (h *Handler) start() {
	if h.Env.Loop.Go(h.serve) == nil { // the process ends
		h.release()
	}
}

// serve is a turn of the session's task. It rests whenever it has to wait for the client, and the loop calls
// it again.
func (h *Handler) serve(task *loop.Task) (rests bool) {
	defer func() {
		if reason := recover(); reason != nil {
			h.Panicked(reason)
		}
		if !rests {
			h.release()
		}
	}()
	if !h.Begin(task) {
		return false
	}
	for more := true; more; {
		if h.account.Load() == nil {
			h.arrived()
		}
		for cmd, ok := h.Next(); ok; cmd, ok = h.Next() {
			h.perform(cmd)
		}
		if more, rests = h.ReadMore(); rests {
			return true
		}
	}
	h.Finish()
	return false
}

// release closes everything. The session has ended. It may be on the loop.
func (h *Handler) release() {
	defer h.service.left(h)
	h.Release()
	if h.listensToMasters() || h.leases.Load() != nil {
		h.LeaveLoop()
	}
	h.entry.Leave()
	h.stopListening()
	h.endLeases()
	h.forgetHeld()
	h.forgetWatched()
	h.client.Release()
}

// Inspect ends the session if it is stuck or silent for too long, and for changes that no command notices. A
// panic in it ends this session only. Any goroutine may call it.
func (h *Handler) Inspect(limits *config.Limits) {
	defer func() {
		if reason := recover(); reason != nil {
			h.Panicked(reason)
		}
	}()
	h.endIfOutdated()
	l := h.listener.Load()
	if l != nil {
		l.GiveBack()
	}
	waits := l != nil && l.Any() || h.holdsLeases()
	h.Session.Inspect(limits, h.login.Load() == loginRequired, waits)
}

// reserve takes memory from the budget of all clients, or gives it back if n is negative. It
// returns false if there is none, and counts that.
func (h *Handler) reserve(n int) bool {
	ok := h.Env.Budget.Reserve(n)
	if !ok {
		h.Env.Metrics.LimitReached(string(config.LimitMemory))
	}
	return ok
}
