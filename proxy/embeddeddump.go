package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"

	mini "github.com/alicebob/miniredis/v2/server"
)

// DUMP and RESTORE of an embedded server. Each is several of miniredis's own
// commands, and only a script runs several as one, inside MULTI too. So a
// client's DUMP becomes a script that calls DUMP, and what a script calls is
// done here.

const (
	dumpScript    = "return redis.pcall('DUMP', KEYS[1])"
	restoreScript = "return redis.pcall('RESTORE', KEYS[1], unpack(ARGV))"
)

const (
	errorPayloadSeal   = "ERR DUMP payload version or checksum are wrong"
	errorPayloadFormat = "ERR Bad data format"
	errorPayloadBusy   = "BUSYKEY Target key name already exists."
	errorPayloadTTL    = "ERR Invalid TTL value, must be >= 0"
)

// dump answers DUMP; false: the command is miniredis's to refuse.
func (a *embeddedAnswers) dump(peer *embeddedPeer, args []string) bool {
	switch {
	case len(args) != 1:
		return false
	case !a.inScript(peer):
		a.server.Dispatch(peer, []string{"EVAL", dumpScript, "1", args[0]})
		return true
	}
	kind, items := a.contents(peer, args[0])
	if kind == "none" {
		peer.WriteNull()
	} else if payload, ok := dumpPayload(kind, items); ok {
		peer.WriteBulk(string(payload))
	} else {
		peer.WriteError("ERR the embedded server cannot dump a " + kind)
	}
	return true
}

// restore answers RESTORE; false: the command is miniredis's to refuse.
func (a *embeddedAnswers) restore(peer *embeddedPeer, args []string) bool {
	switch {
	case len(args) < 3:
		return false
	case !a.inScript(peer):
		script := append([]string{"EVAL", restoreScript, "1"}, args...)
		a.server.Dispatch(peer, script)
		return true
	}
	if refusal := a.restoreKey(peer, args); refusal != "" {
		peer.WriteError(refusal)
	} else {
		peer.WriteOK()
	}
	return true
}

func (a *embeddedAnswers) restoreKey(script *embeddedPeer, args []string) (refusal string) {
	key, command := args[0], "PEXPIRE"
	replace := false
	for _, option := range args[3:] {
		switch strings.ToUpper(option) {
		case "REPLACE":
			replace = true
		case "ABSTTL":
			command = "PEXPIREAT"
		default:
			return "ERR syntax error"
		}
	}
	if there, _ := a.do(script, "EXISTS", key); there == 1 && !replace {
		return errorPayloadBusy
	}
	ttl, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return "ERR value is not an integer or out of range"
	}
	if ttl < 0 {
		return errorPayloadTTL
	}
	kind, items, refusal := readPayload(args[2])
	if refusal != "" {
		return refusal
	}
	if _, err := a.do(script, "DEL", key); err != nil {
		return err.Error()
	}
	if _, err := a.do(script, writing(kind, key, items)...); err != nil {
		return err.Error()
	}
	if ttl > 0 {
		if _, err := a.do(script, command, key, args[1]); err != nil {
			return err.Error()
		}
	}
	return ""
}

// contents is what a key holds, as dumpPayload wants it.
func (a *embeddedAnswers) contents(script *embeddedPeer, key string) (kind string, items []string) {
	reply, _ := a.do(script, "TYPE", key)
	kind = fmt.Sprint(reply)
	var read []string
	switch kind {
	case "string":
		read = []string{"GET", key}
	case "list":
		read = []string{"LRANGE", key, "0", "-1"}
	case "set":
		read = []string{"SMEMBERS", key}
	case "hash":
		read = []string{"HGETALL", key}
	case "zset":
		read = []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	default:
		return kind, nil
	}
	reply, _ = a.do(script, read...)
	list, ok := reply.([]any)
	if !ok {
		return kind, []string{fmt.Sprint(reply)}
	}
	for _, item := range list {
		items = append(items, fmt.Sprint(item))
	}
	return kind, items
}

// writing is the command that makes a key hold what contents has read.
func writing(kind, key string, items []string) []string {
	switch kind {
	case "list":
		return append([]string{"RPUSH", key}, items...)
	case "set":
		return append([]string{"SADD", key}, items...)
	case "hash":
		return append([]string{"HSET", key}, items...)
	case "zset":
		command := []string{"ZADD", key}
		for i := 0; i+1 < len(items); i += 2 {
			command = append(command, items[i+1], items[i])
		}
		return command
	}
	return []string{"SET", key, items[0]}
}

// do runs a command as part of a script that is under way, and so as part of
// what miniredis does now.
func (a *embeddedAnswers) do(script *embeddedPeer, args ...string) (any, error) {
	var reply bytes.Buffer
	peer := mini.NewPeer(bufio.NewWriter(&reply))
	peer.Ctx = script.Ctx
	a.server.Dispatch(peer, args)
	peer.Flush()
	return mini.ParseReply(bufio.NewReader(&reply))
}

// inScript tells whether a script calls, and not a client. miniredis keeps
// that to itself, but it has another refusal for scripts that say EXEC.
func (a *embeddedAnswers) inScript(peer *embeddedPeer) bool {
	if peer.Ctx == nil || a.inMulti(peer) {
		return false
	}
	_, err := a.do(peer, "EXEC")
	return err != nil && !strings.HasPrefix(err.Error(), "ERR EXEC without MULTI")
}

func (a *embeddedAnswers) inMulti(peer *embeddedPeer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	client := a.clients[peer]
	return client != nil && client.inMulti
}
