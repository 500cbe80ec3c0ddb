package proxy

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

// confirmed and told are what Redis sends; of is the first byte.
func confirmed(of, word, name string, total int) string {
	return fmt.Sprintf("%s3\r\n%s%s:%d\r\n", of, bulk(word), bulk(name), total)
}

func told(of string, words ...string) string {
	text := fmt.Sprintf("%s%d\r\n", of, len(words))
	for _, word := range words {
		text += bulk(word)
	}
	return text
}

const unlockChannel = "redisson_lock__channel:{lock:a}"

// The masters are subscribed to before the client sees a confirmation, and
// what comes between is delivered behind it.
func TestConfirmationComesFirst(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	masters.asking = func(what string) {
		if strings.HasPrefix(what, "+channel") {
			masters.publish(unlockChannel, "early")
		}
	}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	for range 100 {
		client.send("SUBSCRIBE " + unlockChannel + "\r\n")
		client.expect(confirmed("*", "subscribe", unlockChannel, 1))
		masters.publish(unlockChannel, "x")
		// "early" may come or not: the client did not know yet.
		got, wanted := client.values(1), told("*", "message", unlockChannel, "x")
		if early := told("*", "message", unlockChannel, "early"); got == early || got == early+wanted {
			if got = got[len(early):]; got == "" {
				got = client.values(1)
			}
		}
		if got != wanted {
			t.Fatalf("got %q", got)
		}
		client.send("UNSUBSCRIBE " + unlockChannel + "\r\n")
		client.expect(confirmed("*", "unsubscribe", unlockChannel, 0))
		masters.publish(unlockChannel, "after")
		client.ask("PING\r\n", "+PONG\r\n")
	}
}

// A message is written between two values of other writers, never inside one.
func TestMessagesStandBetweenReplies(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	large := strings.Repeat("v", 200_000)
	client.ask("*3\r\n"+bulk("SET")+bulk("big")+bulk(large), "+OK\r\n")
	client.ask("HELLO 3\r\n", helloText(3))
	client.ask("SUBSCRIBE lock:a\r\n", confirmed(">", "subscribe", "lock:a", 1))
	const rounds = 100
	go func() {
		for i := range rounds {
			masters.publish("lock:a", fmt.Sprint(i))
		}
	}()
	go func() {
		for range rounds {
			client.send("GET big\r\nGET lock:none\r\n")
		}
	}()
	rest, messages := client.values(3*rounds), 0
	for len(rest) > 0 {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, told(">", "message", "lock:a", fmt.Sprint(messages))); ok {
			messages++
		} else if rest, ok = strings.CutPrefix(rest, bulk(large)); !ok {
			if rest, ok = strings.CutPrefix(rest, "_\r\n"); !ok {
				t.Fatalf("out of step at %.100q", rest)
			}
		}
	}
	if messages != rounds {
		t.Errorf("%d messages in order, want %d", messages, rounds)
	}
}

func TestSubscriberThatDoesNotRead(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	p := startTestProxy(t, redis, masters.configure)
	client := p.dial(t)
	client.ask("SUBSCRIBE lock:a\r\n", confirmed("*", "subscribe", "lock:a", 1))
	payload := strings.Repeat("x", 1<<20)
	for range 200 {
		masters.publish("lock:a", payload)
	}
	eventually(t, "the session has ended", func() bool { return p.sessionCount() == 0 })
	masters.expectNobody(t)
	eventually(t, "the memory is given back", func() bool { return p.env.Budget.InUse() == 0 })
}
