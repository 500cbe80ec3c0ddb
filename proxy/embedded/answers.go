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
	"time"

	mini "github.com/alicebob/miniredis/v2/server"
)

// Version is the version of Redis that an embedded server reports. It is old enough
// that clients do not choose commands that the server does not have.
const Version = "7.0.0"

type peer = mini.Peer

// answers replies to commands that clients need and miniredis lacks: HELLO, INFO,
// CONFIG, CLIENT and COMMAND, which clients send when they connect, and DUMP and
// RESTORE of all types. It runs before every command. A command of a script runs under
// miniredis's lock, so answers must not ask miniredis for its keys, except as part of a
// script (dump.go).
type answers struct {
	runID   string
	port    string
	started time.Time
	server  *mini.Server

	mu         sync.Mutex
	lastID     int
	clients    map[*peer]*clientState // the clients that sent CLIENT, HELLO or MULTI
	trackers   int                    // of the clients
	performing map[*peer]bool         // see performTracked
}

type clientState struct {
	id      int
	since   time.Time
	inMulti bool
	killed  bool
	tracker *tracker // nil: it tracks no keys
}

// answer replies to a command, or returns false if miniredis must. The next command of
// a killed client closes the connection and must not run.
func (a *answers) answer(peer *peer, command string, args ...string) bool {
	if a.performTracked(peer, command, args) {
		return true
	}
	if done, ours := a.turn(peer, command); done {
		return true
	} else if !ours {
		return false
	}
	switch command {
	case "DUMP":
		return a.dump(peer, args)
	case "RESTORE":
		return a.restore(peer, args)
	case "HELLO":
		return a.hello(peer, args)
	case "INFO":
		peer.WriteBulk(a.info(args))
	case "CONFIG":
		return a.config(peer, args)
	case "CLIENT":
		return a.client(peer, args)
	case "COMMAND":
		if len(args) > 0 && strings.EqualFold(args[0], "COUNT") {
			peer.WriteInt(0)
		} else {
			peer.WriteLen(0)
		}
	case "READONLY", "READWRITE":
		peer.WriteError("ERR This instance has cluster support disabled")
	}
	return true
}

// turn updates the client's state. It returns done as true if the command needs no
// reply, because the client was killed, and ours as true if answer may reply. Inside
// MULTI miniredis must reply to all commands but DUMP and RESTORE, because only
// miniredis can queue a command. DUMP and RESTORE become scripts, and miniredis can
// queue those, too.
func (a *answers) turn(peer *peer, command string) (done, ours bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	client := a.clients[peer]
	if client != nil && client.killed {
		peer.Close()
		return true, false
	}
	switch command {
	case "MULTI":
		a.known(peer).inMulti = true
	case "EXEC", "DISCARD":
		if client != nil {
			client.inMulti = false
		}
	case "HELLO", "INFO", "CONFIG", "CLIENT", "COMMAND", "READONLY", "READWRITE":
		return false, client == nil || !client.inMulti
	case "DUMP", "RESTORE":
		return false, true
	}
	return false, false
}

// known returns the client's state. It creates the state if necessary. The caller holds
// the mutex.
func (a *answers) known(peer *peer) *clientState {
	if client := a.clients[peer]; client != nil {
		return client
	}
	a.lastID++
	client := &clientState{id: a.lastID, since: time.Now()}
	a.clients[peer] = client
	peer.OnDisconnect(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.trackNoMore(client)
		delete(a.clients, peer)
	})
	return client
}

func (a *answers) id(peer *peer) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known(peer).id
}

// hello answers HELLO with the same version as INFO; miniredis would report another.
// It leaves HELLO with AUTH to miniredis, which refuses it.
func (a *answers) hello(peer *peer, args []string) bool {
	version := 2
	if peer.Resp3 {
		version = 3
	}
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n != 2 && n != 3 {
			return false // miniredis has the error text
		}
		version, args = n, args[1:]
	}
	name := peer.ClientName
	if len(args) == 2 && strings.EqualFold(args[0], "SETNAME") {
		name = args[1]
	} else if len(args) > 0 {
		return false
	}
	peer.ClientName = name
	peer.Resp3 = version == 3
	peer.WriteMapLen(7)
	for _, pair := range [][2]string{{"server", "redis"}, {"version", Version}} {
		peer.WriteBulk(pair[0])
		peer.WriteBulk(pair[1])
	}
	peer.WriteBulk("proto")
	peer.WriteInt(version)
	peer.WriteBulk("id")
	peer.WriteInt(a.id(peer))
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		peer.WriteBulk(pair[0])
		peer.WriteBulk(pair[1])
	}
	peer.WriteBulk("modules")
	peer.WriteLen(0)
	return true
}

// info returns the sections of INFO as Redis writes them. Keyspace is always empty.
func (a *answers) info(args []string) string {
	uptime := int(time.Since(a.started).Seconds())
	sections := []struct{ name, body string }{
		{"Server", fmt.Sprintf("redis_version:%s\r\nredis_mode:standalone\r\nos:%s\r\narch_bits:%d\r\nprocess_id:0\r\nrun_id:%s\r\ntcp_port:%s\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
			Version, runtime.GOOS, strconv.IntSize, a.runID, a.port, uptime, uptime/86400)},
		{"Clients", fmt.Sprintf("connected_clients:%d\r\nblocked_clients:0\r\n", a.server.ClientsLen())},
		{"Memory", "used_memory:1048576\r\nused_memory_human:1.00M\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"},
		{"Persistence", "loading:0\r\nasync_loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\naof_rewrite_in_progress:0\r\n"},
		{"Stats", fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\n", a.server.TotalConnections(), a.server.TotalCommands())},
		{"Replication", "role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
		{"Keyspace", ""},
	}
	var wanted func(section string) bool
	if len(args) == 0 {
		wanted = func(string) bool { return true }
	} else {
		wanted = func(section string) bool {
			return slices.ContainsFunc(args, func(arg string) bool {
				arg = strings.ToLower(arg)
				return arg == strings.ToLower(section) || arg == "all" || arg == "default" || arg == "everything"
			})
		}
	}
	var text []string
	for _, section := range sections {
		if wanted(section.name) {
			text = append(text, "# "+section.name+"\r\n"+section.body)
		}
	}
	return strings.Join(text, "\r\n")
}

var settings = map[string]string{
	"appendonly": "no", "databases": "16", "lua-time-limit": "5000", "maxclients": "10000",
	"maxmemory": "0", "maxmemory-policy": "noeviction", "notify-keyspace-events": "",
	"proto-max-bulk-len": "536870912", "requirepass": "", "save": "", "tcp-keepalive": "300", "timeout": "0",
}

func (a *answers) config(peer *peer, args []string) bool {
	if len(args) == 1 && strings.EqualFold(args[0], "RESETSTAT") {
		peer.WriteOK()
		return true
	}
	if len(args) < 2 || !strings.EqualFold(args[0], "GET") {
		peer.WriteError("ERR the embedded server knows CONFIG GET and CONFIG RESETSTAT only")
		return true
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

// client answers the subcommands of CLIENT that connection pools send. It returns false
// for SETNAME, GETNAME and unknown ones; miniredis answers those.
func (a *answers) client(peer *peer, args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch strings.ToUpper(args[0]) {
	case "ID":
		peer.WriteInt(a.id(peer))
	case "GETREDIR":
		peer.WriteInt(-1)
	case "TRACKING":
		a.tracking(peer, args[1:])
	case "SETINFO", "NO-EVICT", "NO-TOUCH", "UNPAUSE", "CACHING":
		peer.WriteOK()
	case "INFO":
		a.id(peer)
		peer.WriteBulk(a.list(peer))
	case "LIST":
		a.id(peer)
		peer.WriteBulk(a.list(nil))
	case "KILL":
		a.kill(peer, args[1:])
	default:
		return false
	}
	return true
}

// list returns a line for each client, or for only one if that is not nil.
func (a *answers) list(only *peer) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var lines []string
	for peer, client := range a.clients {
		if only == nil || peer == only {
			age := int(time.Since(client.since).Seconds())
			lines = append(lines, fmt.Sprintf("id=%d addr=127.0.0.1:0 laddr=127.0.0.1:%s fd=0 name=%s age=%d idle=0 flags=N db=0 sub=0 psub=0 multi=-1 cmd=client user=default\n",
				client.id, a.port, peer.ClientName, age))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// kill marks the client with this id. The client's next command closes its connection
// and does not run.
func (a *answers) kill(peer *peer, args []string) {
	if len(args) != 2 || !strings.EqualFold(args[0], "ID") {
		peer.WriteError("ERR the embedded server knows CLIENT KILL ID only")
		return
	}
	id, err := strconv.Atoi(args[1])
	if err != nil || id < 1 {
		peer.WriteError("ERR client-id should be greater than 0")
		return
	}
	a.mu.Lock()
	killed := 0
	for other, client := range a.clients {
		// Redis does not kill the caller, unless SKIPME says so.
		if client.id == id && other != peer && !client.killed {
			client.killed = true
			killed++
		}
	}
	a.mu.Unlock()
	peer.WriteInt(killed)
}
