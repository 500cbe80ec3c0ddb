package embedded

import (
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	mini "github.com/alicebob/miniredis/v2/server"
)

// Version is the version of Redis that an embedded server reports. It is old enough
// that clients do not choose commands that the server does not have.
const Version = "7.0.0"

type peer = mini.Peer

// answers replies to commands that clients send when they connect and miniredis lacks, and
// to DUMP and RESTORE of all types. It runs before every command. A command of a script runs under
// miniredis's lock, so answers must not ask miniredis for its keys, except as part of a
// script (dump.go).
type answers struct {
	info   []section
	server *mini.Server

	mu      sync.Mutex
	inMulti map[*peer]bool // has the connections that have sent MULTI; true: they are in a transaction
}

// answer replies to a command, or returns false if miniredis must. Inside MULTI that replies to all
// commands but DUMP and RESTORE, because only miniredis can queue a command. DUMP and RESTORE become
// scripts, and miniredis can queue those, too.
func (a *answers) answer(peer *peer, command string, args ...string) bool {
	switch command {
	case "DUMP":
		return a.dump(peer, args)
	case "RESTORE":
		return a.restore(peer, args)
	case "MULTI", "EXEC", "DISCARD":
		a.noteMulti(peer, command == "MULTI")
		return false
	}
	if a.isInMulti(peer) {
		return false
	}
	switch command {
	case "INFO":
		peer.WriteBulk(a.sections(args))
	case "CONFIG":
		return getSettings(peer, args)
	case "CLIENT":
		if len(args) == 0 || !slices.Contains([]string{"SETINFO", "NO-EVICT", "NO-TOUCH"}, strings.ToUpper(args[0])) {
			return false
		}
		peer.WriteOK()
	case "COMMAND":
		peer.WriteLen(0)
	default:
		return false
	}
	return true
}

// noteMulti notes that a transaction begins or ends on a connection.
func (a *answers) noteMulti(peer *peer, begins bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch _, known := a.inMulti[peer]; {
	case known:
		a.inMulti[peer] = begins
	case begins: // not for an EXEC that begins nothing: inScript sends these on peers that never disconnect
		a.inMulti[peer] = true
		peer.OnDisconnect(func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.inMulti, peer)
		})
	}
}

func (a *answers) isInMulti(peer *peer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inMulti[peer]
}

// A section is one of INFO.
type section struct{ name, body string }

// infoOf are the sections of a server as Redis writes them. Keyspace is always empty.
func infoOf(runID, port string) []section {
	return []section{
		{"Server", fmt.Sprintf("redis_version:%s\r\nredis_mode:standalone\r\nos:%s\r\narch_bits:%d\r\nprocess_id:0\r\nrun_id:%s\r\ntcp_port:%s\r\n",
			Version, runtime.GOOS, strconv.IntSize, runID, port)},
		{"Memory", "used_memory:1048576\r\nused_memory_human:1.00M\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"},
		{"Persistence", "loading:0\r\nasync_loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\naof_rewrite_in_progress:0\r\n"},
		{"Replication", "role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
		{"Keyspace", ""},
	}
}

// sections returns those of INFO that the arguments name, or all.
func (a *answers) sections(args []string) string {
	var text []string
	for _, s := range a.info {
		if len(args) == 0 || slices.ContainsFunc(args, func(arg string) bool {
			return slices.Contains([]string{strings.ToLower(s.name), "all", "default", "everything"}, strings.ToLower(arg))
		}) {
			text = append(text, "# "+s.name+"\r\n"+s.body)
		}
	}
	return strings.Join(text, "\r\n")
}

var settings = map[string]string{
	"appendonly": "no", "databases": "16", "lua-time-limit": "5000", "maxclients": "10000",
	"maxmemory": "0", "maxmemory-policy": "noeviction", "notify-keyspace-events": "",
	"proto-max-bulk-len": "536870912", "requirepass": "", "save": "", "tcp-keepalive": "300", "timeout": "0",
}

// getSettings answers CONFIG GET. It returns false for any other CONFIG, which miniredis refuses.
func getSettings(peer *peer, args []string) bool {
	if len(args) < 2 || !strings.EqualFold(args[0], "GET") {
		return false
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if slices.ContainsFunc(args[1:], func(pattern string) bool {
			matched, _ := path.Match(strings.ToLower(pattern), name)
			return matched
		}) {
			names = append(names, name)
		}
	}
	peer.WriteMapLen(len(names))
	for _, name := range names {
		peer.WriteBulk(name)
		peer.WriteBulk(settings[name])
	}
	return true
}
