package proxy

import (
	"context"
	"crypto/sha1"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/redlock"
)

// instantLocker wins everything at once, so that what is measured is the
// proxy's own part of a lock command and not the masters'.
type instantLocker struct{ lock.Locker }

func (instantLocker) Acquire(context.Context, redlock.AcquireRequest) redlock.Outcome {
	return redlock.Outcome{Verdict: redlock.Won}
}

func (instantLocker) Release(context.Context, redlock.ReleaseRequest) redlock.Outcome {
	return redlock.Outcome{Verdict: redlock.Won, Number: 1}
}

func (instantLocker) Get(context.Context, int, []byte) redlock.Outcome {
	return redlock.Outcome{Verdict: redlock.Won, Value: instantValue}
}

func (instantLocker) Extend(context.Context, redlock.ExtendRequest) redlock.Outcome {
	return redlock.Outcome{Verdict: redlock.Won}
}

var instantValue, instantReply = []byte("0123456789abcdef"), []byte(":1\r\n")

func (instantLocker) Run(context.Context, redlock.RunRequest) redlock.Outcome {
	return redlock.Outcome{Verdict: redlock.Won, Reply: instantReply}
}

// lockBench is a session to which the same text comes again and again. The text
// may hold the digest of benchScript as "sha".
func lockBench(b testing.TB, text func(sha string) string) *stepper {
	b.Helper()
	meter, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	routes := &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}}
	current := config.NewActive(config.NewSettings(config.Demo(), nil, nil, routes))
	texts := lock.NewScripts(1<<20, nil)
	log := slog.New(slog.DiscardHandler)
	env := session.NewEnv(current, meter, log, proxytest.Loop(b))
	remembers := events.New(log)
	commands := newTestService(env, handler.Config{
		Scripts: texts,
		Locks: lock.New(lock.Config{
			Locker:        instantLocker{},
			Router:        func() *route.Router { return current.Load().Router },
			MaxQuarantine: func() time.Duration { return current.Load().Config.MaxQuarantine },
			MaxReply:      func() int64 { return current.Load().Limits.LockReply },
			Scripts:       texts,
			Meter:         meter,
			Log:           log,
			Journal:       remembers,
			IsSlow:        func(time.Duration) bool { return false },
		}),
	})
	texts.Register([]byte(benchScript))
	return newStepper(b, env, commands, text(fmt.Sprintf("%x", sha1.Sum([]byte(benchScript)))))
}

// A stepper is a session's client that sends the same text again and again, and
// awaits something each time.
type stepper struct {
	conn   net.Conn
	text   []byte
	answer [64]byte
}

func newStepper(b testing.TB, env *session.Env, commands *handler.Service, text string) *stepper {
	b.Helper()
	return &stepper{conn: dialServer(b, commands), text: []byte(text)}
}

// step returns when the session has answered once more.
func (c *stepper) step() {
	_, _ = c.conn.Write(c.text)
	_, _ = c.conn.Read(c.answer[:])
}

const benchScript = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

// benchLockCommands are the usual ones, and how many allocations each costs
// here, of all that a lock command costs.
var benchLockCommands = []struct {
	line        string
	allocations float64
}{
	{"SET lock:a 0123456789abcdef NX PX 30000", 0},
	{"EVALSHA sha 1 lock:a 0123456789abcdef", 1},
	{"EVAL script 1 lock:a 0123456789abcdef", 0},
	{"DEL lock:a", 0},
	{"GET lock:a", 0},
	{"PEXPIRE lock:a 30000", 0},
}

// repeating is a session that is sent that command.
func repeating(b testing.TB, line string) *stepper {
	s := lockBench(b, func(sha string) string {
		words := strings.Fields(line)
		for i, word := range words {
			switch word {
			case "sha":
				words[i] = sha
			case "script":
				words[i] = benchScript
			}
		}
		return string(proxytest.EncodeCommand(asBytes(words)...))
	})
	s.step()
	return s
}

func asBytes(words []string) (args [][]byte) {
	for _, word := range words {
		args = append(args, []byte(word))
	}
	return args
}

// BenchmarkPerformOnLocks is what the proxy spends on a lock command.
func BenchmarkPerformOnLocks(b *testing.B) {
	for _, command := range benchLockCommands {
		name, _, _ := strings.Cut(command.line, " ")
		b.Run(name, func(b *testing.B) {
			s := repeating(b, command.line)
			b.ReportAllocs()
			for b.Loop() {
				s.step()
			}
		})
	}
}
