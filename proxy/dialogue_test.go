package proxy

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/integration/layer"
	"redlock-proxy/proxy/proxytest"
)

// The dialogues of testdata are what clients say, at the margin, and below it what they are answered:
//
//	# Everything after MULTI waits for EXEC.
//	a: MULTI | SET k v | EXEC
//	    +OK
//	    +QUEUED
//	    [+OK]
//	b: PUBLISH news hello
//	    :1
//	    c: >["message" "news" "hello"]
//
// A client has any name, and connects when it is first named. Its commands are inline commands, and " | " stands
// between those that come in one piece. "a raw:" is followed by bytes in Go's quotes, and *N repeats a piece. proxytest.Show
// writes a reply as a line. "closed" is the end of the connection. A name before an answer says that another client gets it.
// dialogue_events_test.go has the other events.
//
// The folder redis holds what a real Redis answered: -rewrite asks one. The proxy must answer the same. The folder proxy holds
// what only the proxy can say, so -rewrite asks the proxy.

// TestDialogues plays what Redis answered: against Redis itself, and against the proxy, whose clients have connections of their
// own to the upstream or share some, or which has no upstream.
func TestDialogues(t *testing.T) {
	redis := serverIfInstalled(t)
	// Another version of Redis may answer otherwise than the recorded one. Then the proxy in front of it must do the same.
	isRecorded := redis != nil && strings.Contains(redis.Ask(t, "INFO server"), "redis_version:7.0.")
	datatest.Play(t, "testdata/dialogues/redis/*.txt", func(t *testing.T, script *datatest.Script) {
		var talk dialogue
		direct := newStage(t, redis)
		for event := range script.Events {
			recorded := script.Recorded()
			came := recorded
			if redis != nil {
				came = direct.do(turn{event, nil})
			}
			if isRecorded || datatest.Rewriting() {
				recorded = came
			}
			for _, line := range recorded {
				script.Printf("%s", line)
			}
			talk = append(talk, turn{event, came})
		}
		direct.end()
		if datatest.Rewriting() {
			return
		}
		for _, kind := range talk.kinds() {
			t.Run(kind, func(t *testing.T) {
				if kind == withoutUpstream {
					talk.compare(t, nil, kind)
					return
				}
				if redis == nil {
					layer.Program(t, "redis-server", "redis-server")
				}
				talk.compare(t, redis, kind)
				if talk.isPlain() {
					append(dialogue{{event: "a: GET opened"}}, talk...).asked(t, redis).compare(t, redis, kind)
					talk.atOnce().asked(t, redis).compare(t, redis, kind)
				}
			})
		}
	})
}

// TestDialoguesOfTheProxy plays what the proxy alone says.
func TestDialoguesOfTheProxy(t *testing.T) {
	redis := serverIfInstalled(t)
	datatest.Play(t, "testdata/dialogues/proxy/*.txt", func(t *testing.T, script *datatest.Script) {
		s := newStage(t, redis)
		for event := range script.Events {
			if isSetup := strings.HasPrefix(event, "proxy:"); isSetup || s.p == nil {
				s.start(event)
				if isSetup {
					continue
				}
			}
			for _, line := range s.do(turn{event, script.Recorded()}) {
				script.Printf("%s", line)
			}
		}
		s.end()
	})
}

// serverIfInstalled is a Redis for all dialogues. Where there is none, those that need it are skipped.
func serverIfInstalled(t *testing.T) *proxytest.Redis {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil && !datatest.Rewriting() {
		return nil
	}
	return proxytest.StartRedis(t)
}

// A dialogue is all events of a script, with what was answered to each.
type dialogue []turn

type turn struct {
	event string
	came  []string
}

const (
	withoutUpstream = "upstream none"
	withAndWithout  = "with and without upstream"
	overTLS         = "over TLS"
)

// kinds are the proxies that the dialogue is for: those that its first line names, or all that have an upstream.
func (d dialogue) kinds() []string {
	setup, _ := strings.CutPrefix(d[0].event, "proxy: ")
	switch {
	case strings.Contains(setup, withAndWithout):
		return []string{"own", "shared", withoutUpstream}
	case strings.Contains(setup, withoutUpstream):
		return []string{withoutUpstream}
	}
	return []string{"own", "shared", overTLS}
}

// isPlain tells whether only one client speaks, in commands.
func (d dialogue) isPlain() bool {
	return !slices.ContainsFunc(d, func(t turn) bool { return !strings.HasPrefix(t.event, "a: ") })
}

// atOnce is the dialogue of a client that does not wait for answers.
func (d dialogue) atOnce() dialogue {
	var all []string
	for _, t := range d {
		all = append(all, strings.TrimPrefix(t.event, "a: "))
	}
	return dialogue{{event: "a: " + strings.Join(all, " | ")}}
}

// asked is the dialogue with what Redis answers to it now.
func (d dialogue) asked(t *testing.T, redis *proxytest.Redis) dialogue {
	t.Helper()
	direct := newStage(t, redis)
	defer direct.end()
	asked := slices.Clone(d)
	for i := range asked {
		asked[i].came = direct.do(asked[i])
	}
	return asked
}

// compare plays the dialogue against a proxy, and wants what Redis has answered.
func (d dialogue) compare(t *testing.T, redis *proxytest.Redis, kind string) {
	t.Helper()
	through := newStage(t, redis)
	setup, isSetup := strings.CutPrefix(d[0].event, "proxy: ")
	if !isSetup {
		setup = kind
	}
	through.start("proxy: " + kind + ", " + setup)
	for _, turn := range d {
		if got := through.do(turn); !slices.Equal(got, turn.came) {
			t.Fatalf("%s\nis answered with\n    %s\nand by Redis with\n    %s", turn.event, strings.Join(got, "\n    "), strings.Join(turn.came, "\n    "))
		}
	}
	through.end()
}
