package upstream

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
)

// ClientSettings are what a client has set for its connection.
type ClientSettings struct {
	Version             wire.Version
	DB                  int // the database of the last successful SELECT
	Name                string
	LibName, LibVersion string // by CLIENT SETINFO
	NoEvict, NoTouch    bool
}

// A ClientState keeps a client's ClientSettings, so that the upstream connection can be opened
// late, be closed by RESET, and be unreachable.
type ClientState struct {
	ClientSettings
	AsksID bool // the client uses its id, so a new connection is asked for its own

	reserve func(n int) bool
	bytes   int // the memory that the texts take
}

// NewClientState makes the state of a client that has set nothing. reserve takes memory, or
// returns false. A negative number gives memory back. The caller must call Release.
func NewClientState(reserve func(n int) bool, db int) ClientState {
	return ClientState{ClientSettings: ClientSettings{DB: db}, reserve: reserve}
}

// Release gives back the memory of the state. The state must not be used any more.
func (c *ClientState) Release() { c.reserve(-c.bytes) }

// Restore brings back an earlier copy of this state. use takes memory, whatever the limit: the
// texts exist already.
func (c *ClientState) Restore(before ClientState, use func(n int)) {
	use(before.bytes - c.bytes)
	*c = before
}

// IsOrdinary tells whether no command's effect depends on these settings, if the connection uses
// that database and the client's protocol. The library's name does not matter.
func (c *ClientState) IsOrdinary(db int) bool {
	return c.DB == db && c.Name == "" && !c.NoEvict && !c.NoTouch
}

// SetName keeps a copy of the client's name. It returns false if there is no memory.
func (c *ClientState) SetName(name []byte) bool { return c.keep(&c.Name, name) }

func (c *ClientState) keep(text *string, value []byte) bool {
	more := len(value) - len(*text)
	if !c.reserve(more) {
		return false
	}
	c.bytes += more
	*text = string(value)
	return true
}

// Login returns a Login that sets the same state on a new connection.
func (c *ClientState) Login() *Login {
	return &Login{ClientSettings: c.ClientSettings, AsksID: c.AsksID}
}

// Perform performs CLIENT SETNAME, GETNAME, SETINFO, NO-EVICT or NO-TOUCH on the state alone,
// and returns the reply. name is that of the command's specification.
func (c *ClientState) Perform(name string, args [][]byte) (reply []byte) {
	switch name {
	case "client|setname":
		if !wire.IsClientName(args[2]) {
			return []byte(wire.ErrClientName)
		}
		if !c.SetName(args[2]) {
			return []byte(wire.ErrMemory)
		}
	case "client|getname":
		if c.Name == "" {
			return wire.AppendNull(nil, c.Version)
		}
		return redcon.AppendBulkString(nil, c.Name)
	case "client|setinfo":
		return c.setInfo(args[2], args[3])
	case "client|no-evict", "client|no-touch":
		on := wire.IsWord(args[2], "ON")
		if !on && !wire.IsWord(args[2], "OFF") {
			return []byte(wire.ErrSyntax)
		}
		if name == "client|no-evict" {
			c.NoEvict = on
		} else {
			c.NoTouch = on
		}
	}
	return []byte(wire.OK)
}

func (c *ClientState) setInfo(attribute, value []byte) (reply []byte) {
	var text *string
	known := ""
	switch {
	case wire.IsWord(attribute, "LIB-NAME"):
		text, known = &c.LibName, "lib-name"
	case wire.IsWord(attribute, "LIB-VER"):
		text, known = &c.LibVersion, "lib-ver"
	default:
		return []byte("-ERR Unrecognized option '" + wire.OneLine(attribute) + "'\r\n")
	}
	switch {
	case !wire.IsClientName(value):
		return []byte("-ERR " + known + " cannot contain spaces, newlines or special characters.\r\n")
	case !c.keep(text, value):
		return []byte(wire.ErrMemory)
	}
	return []byte(wire.OK)
}
