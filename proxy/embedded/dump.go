package embedded

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"

	mini "github.com/alicebob/miniredis/v2/server"

	"redlock-proxy/redlock/rdb"
)

// This file implements DUMP and RESTORE, with Redis's payloads. miniredis itself can
// dump strings only, and writes them without Redis's format. Each of the two commands
// needs several commands of miniredis. Only a script runs several as one, also inside
// MULTI. So a client's DUMP becomes a script that calls DUMP, and the code below answers
// that call.

// newestPayload is the RDB version of Redis 7.0's payloads. An embedded server restores no newer ones.
const newestPayload = 10

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

// dump answers DUMP. It returns false if miniredis must refuse the command.
func (a *answers) dump(peer *peer, args []string) bool {
	switch {
	case len(args) != 1:
		return false
	case !a.inScript(peer):
		a.server.Dispatch(peer, []string{"EVAL", dumpScript, "1", args[0]})
		return true
	}
	kind, value := a.contents(peer, args[0])
	if kind == "none" {
		peer.WriteNull()
	} else if payload := rdb.Dump(value); payload != nil {
		peer.WriteBulk(string(payload))
	} else {
		peer.WriteError("ERR the embedded server cannot dump a " + kind)
	}
	return true
}

// restore answers RESTORE. It returns false if miniredis must refuse the command.
func (a *answers) restore(peer *peer, args []string) bool {
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

// restoreKey carries out RESTORE as part of a script. It returns the error reply, or ""
// if the key is restored.
func (a *answers) restoreKey(script *peer, args []string) (refusal string) {
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
	dump := []byte(args[2])
	if _, version, ok := rdb.Open(dump); !ok || version > newestPayload {
		return errorPayloadSeal
	}
	value := rdb.Read(dump)
	if value.Kind == rdb.Unknown || len(value.Items) == 0 {
		return errorPayloadFormat
	}
	if _, err := a.do(script, "DEL", key); err != nil {
		return err.Error()
	}
	if _, err := a.do(script, writing(key, value)...); err != nil {
		return err.Error()
	}
	if ttl > 0 {
		if _, err := a.do(script, command, key, args[1]); err != nil {
			return err.Error()
		}
	}
	return ""
}

// contents returns the type of a key, as TYPE replies it, and the key's value.
func (a *answers) contents(script *peer, key string) (kind string, v rdb.Value) {
	reply, _ := a.do(script, "TYPE", key)
	kind = fmt.Sprint(reply)
	var read []string
	switch kind {
	case rdb.String.String():
		v.Kind, read = rdb.String, []string{"GET", key}
	case rdb.List.String():
		v.Kind, read = rdb.List, []string{"LRANGE", key, "0", "-1"}
	case rdb.Set.String():
		v.Kind, read = rdb.Set, []string{"SMEMBERS", key}
	case rdb.Hash.String():
		v.Kind, read = rdb.Hash, []string{"HGETALL", key}
	case rdb.SortedSet.String():
		v.Kind, read = rdb.SortedSet, []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	default:
		return kind, v
	}
	reply, _ = a.do(script, read...)
	list, ok := reply.([]any)
	if !ok {
		list = []any{reply}
	}
	for i, item := range list {
		text := fmt.Sprint(item)
		if v.Kind == rdb.SortedSet && i%2 == 1 {
			score, _ := strconv.ParseFloat(text, 64)
			v.Scores = append(v.Scores, score)
		} else {
			v.Items = append(v.Items, []byte(text))
		}
	}
	return kind, v
}

// writing returns the command that writes a value to a key.
func writing(key string, v rdb.Value) []string {
	commands := map[rdb.Kind]string{rdb.String: "SET", rdb.List: "RPUSH", rdb.Set: "SADD", rdb.Hash: "HSET", rdb.SortedSet: "ZADD"}
	command := []string{commands[v.Kind], key}
	for i, item := range v.Items {
		if v.Kind == rdb.SortedSet {
			command = append(command, strconv.FormatFloat(v.Scores[i], 'g', -1, 64))
		}
		command = append(command, string(item))
	}
	return command
}

// do runs a command as part of the running script, under the lock of miniredis that the
// script already holds.
func (a *answers) do(script *peer, args ...string) (any, error) {
	var reply bytes.Buffer
	peer := mini.NewPeer(bufio.NewWriter(&reply))
	peer.Ctx = script.Ctx
	a.server.Dispatch(peer, args)
	peer.Flush()
	return mini.ParseReply(bufio.NewReader(&reply))
}

// inScript tells whether the command comes from a script, not from a client. miniredis
// does not say so. But it refuses EXEC with another error if a script calls it.
func (a *answers) inScript(peer *peer) bool {
	if peer.Ctx == nil || a.isInMulti(peer) {
		return false
	}
	_, err := a.do(peer, "EXEC")
	return err != nil && !strings.HasPrefix(err.Error(), "ERR EXEC without MULTI")
}
