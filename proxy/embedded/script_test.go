package embedded

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/proxytest"
)

// The scripts testdata/*.txt are commands to embedded servers, one of RESP2 and one of RESP3, and their answers, which are
// the same. In a command DUMPED and BROKEN are what DUMP k has returned, and that with another end, and LATER is the Unix
// time in ms in an hour. An argument in ” has spaces. The other events are
//
//	real COMMAND     the same of a Redis, which gets the dumps of the first server
//	TTL              of k, in minutes, rounded up
func TestScripts(t *testing.T) {
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, told *datatest.Script) {
		conns := []*redis.Conn{embeddedTestClient(t, startTestEmbedded(t), 2).Conn(), embeddedTestClient(t, startTestEmbedded(t), 3).Conn()}
		dumps := make([]string, len(conns))
		for _, conn := range conns {
			defer conn.Close()
		}
		var real *redis.Conn
		for event := range told.Events {
			var answers []string
			line, isReal := strings.CutPrefix(event, "real ")
			if isReal {
				if real == nil {
					real = proxytest.StartRedis(t).Client(t).Conn()
					defer real.Close()
				}
				told.Printf("%s", does(t, real, line, &dumps[0]))
				continue
			}
			for i, conn := range conns {
				answers = append(answers, does(t, conn, line, &dumps[i]))
			}
			told.Printf("%s", strings.Join(slices.Compact(answers), "\n"))
		}
	})
}

// does runs a command and shows the answer.
func does(t *testing.T, conn *redis.Conn, line string, dump *string) string {
	if line == "TTL" {
		ttl := conn.PTTL(t.Context(), "k").Val()
		return fmt.Sprint(int((ttl + time.Minute - 1) / time.Minute))
	}
	var args []any
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 { // between quotes
			args = append(args, part)
			continue
		}
		for word := range strings.FieldsSeq(part) {
			word = strings.ReplaceAll(word, "LATER", fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()))
			word = strings.NewReplacer("LONG", strings.Repeat("x", 20_000), "BINARY", "\x00\r\n\xff", "EMPTY", "").Replace(word)
			if word == "BROKEN" {
				word = (*dump)[:len(*dump)-1] + "x"
			}
			args = append(args, strings.ReplaceAll(word, "DUMPED", *dump))
		}
	}
	reply, err := conn.Do(t.Context(), args...).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "nothing"
	case err != nil:
		return strings.TrimSpace(err.Error())
	case args[0] == "DUMP":
		if text, isDump := reply.(string); isDump && text != "QUEUED" {
			*dump, reply = text, "a dump"
		}
	}
	shown := fmt.Sprint(reply)
	if *dump != "" {
		shown = strings.ReplaceAll(shown, *dump, "DUMPED")
	}
	return fmt.Sprintf("%.900q", differs.ReplaceAllString(shown, "$1:N"))
}

var differs = regexp.MustCompile(`(run_id|tcp_port):\w+`)
