package rig

import (
	"strings"
	"testing"
)

func ChannelOf(key string) string { return "redisson_lock__channel:{" + key + "}" }

// Conversation is a raw connection for tests that write out each reply.
type Conversation struct {
	*Wire
	t *testing.T
}

func (p *Proxy) Talk(t *testing.T, protocol int) Conversation {
	t.Helper()
	return Conversation{Dial(t, p.Addr(), protocol), t}
}

// Ask sends a command and requires the reply want, in the form of Say.
func (w Conversation) Ask(want string, args ...string) {
	w.t.Helper()
	if err := w.Send(Encode(args...)); err != nil {
		w.t.Fatalf("%q: %v", args, err)
	}
	w.Expect(want)
}

// Expect reads one value and requires that it is want, in the form of Say.
func (w Conversation) Expect(want string) {
	w.t.Helper()
	raw, err := w.Read()
	if err != nil {
		w.t.Fatalf("waiting for %q: %v after %q", want, err, raw)
	}
	if got := Say(raw); got != want {
		w.t.Fatalf("got %q, want %q", got, want)
	}
}

// Say writes a value on one line. A push looks as it does in RESP2.
func Say(raw []byte) string {
	v, _ := ParseValue(raw)
	if v.Kind == '*' || v.Kind == '>' {
		var words []string
		for _, item := range v.Items {
			text := item.Text
			if len(item.Items) > 0 {
				text = item.Items[0].Text
			}
			words = append(words, text)
		}
		return strings.Join(words, " ")
	}
	if v.Kind == '_' {
		return "-1"
	}
	return v.Text
}

// Hold takes a lock that is a hash. Unlock releases it and publishes a message.
func (w Conversation) Hold(key string) {
	w.t.Helper()
	w.Ask("1", "HSET", key, "owner-of-the-lock-1", "1")
}

func (w Conversation) Unlock(key, message string) {
	w.t.Helper()
	w.Ask("1", "EVAL", WakingUnlock, "2", key, ChannelOf(key), "owner-of-the-lock-1", message)
}

// WakingUnlock wakes waiters as Redisson's unlock does: one script deletes the lock and
// publishes. KEYS are the lock and the channel.
const WakingUnlock = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[2])
return 1`

// TrackedLock acquires as rueidislock does. The GET at the end makes the server track
// that the client knows the key.
const TrackedLock = `
local taken = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
redis.call('GET', KEYS[1])
return taken`

const CompareAndDeleteText = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
