package upstream

import (
	"bytes"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
)

// A ClientState is what a client has set for its connection. The owner keeps it, so that the
// upstream connection can be opened late, be closed by RESET, and be unreachable.
type ClientState struct {
	Version wire.Version
	DB      int // the database of the last successful SELECT

	reserve func(n int) bool
	name    []byte
	info    []clientInfo
	noEvict bool
	noTouch bool
	bytes   int // the memory that name and info take
}

// clientInfo is one attribute that CLIENT SETINFO has set.
type clientInfo struct{ attribute, value string }

// NewClientState makes the state of a client that has set nothing. reserve takes memory, or
// returns false. A negative number gives memory back. The caller must call Release.
func NewClientState(reserve func(n int) bool, db int) ClientState {
	return ClientState{DB: db, reserve: reserve}
}

// Release gives back the memory of the state. The state must not be used any more.
func (c *ClientState) Release() { c.reserve(-c.bytes) }

// Restore brings back an earlier copy of this state.
func (c *ClientState) Restore(before ClientState) {
	c.reserve(before.bytes - c.bytes)
	*c = before
}

// Name is the client's name, or empty.
func (c *ClientState) Name() []byte { return c.name }

// SetName keeps a copy of the client's name. It returns false if there is no memory.
func (c *ClientState) SetName(name []byte) bool {
	if !c.mayKeep(len(name) - len(c.name)) {
		return false
	}
	c.name = bytes.Clone(name)
	return true
}

func (c *ClientState) mayKeep(more int) bool {
	if !c.reserve(more) {
		return false
	}
	c.bytes += more
	return true
}

// Login returns a Login that sets the same state on a new connection.
func (c *ClientState) Login() *Login {
	login := &Login{Version: c.Version, DB: c.DB}
	add := func(args ...string) { login.State = append(login.State, append([]string{"CLIENT"}, args...)) }
	if len(c.name) > 0 {
		add("SETNAME", string(c.name))
	}
	for _, info := range c.info {
		add("SETINFO", info.attribute, info.value)
	}
	if c.noEvict {
		add("NO-EVICT", "on")
	}
	if c.noTouch {
		add("NO-TOUCH", "on")
	}
	return login
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
		if len(c.name) == 0 {
			return wire.AppendNull(nil, c.Version)
		}
		return redcon.AppendBulk(nil, c.name)
	case "client|setinfo":
		return c.setInfo(args[2], args[3])
	case "client|no-evict", "client|no-touch":
		on := wire.IsWord(args[2], "ON")
		if !on && !wire.IsWord(args[2], "OFF") {
			return []byte(wire.ErrSyntax)
		}
		if name == "client|no-evict" {
			c.noEvict = on
		} else {
			c.noTouch = on
		}
	}
	return []byte(wire.OK)
}

func (c *ClientState) setInfo(attribute, value []byte) (reply []byte) {
	known := ""
	switch {
	case wire.IsWord(attribute, "LIB-NAME"):
		known = "lib-name"
	case wire.IsWord(attribute, "LIB-VER"):
		known = "lib-ver"
	}
	if known == "" {
		return []byte("-ERR Unrecognized option '" + wire.OneLine(attribute) + "'\r\n")
	}
	if !wire.IsClientName(value) {
		return []byte("-ERR " + known + " cannot contain spaces, newlines or special characters.\r\n")
	}
	info := clientInfo{attribute: known, value: string(value)}
	for i := range c.info {
		if c.info[i].attribute == known {
			if !c.mayKeep(len(value) - len(c.info[i].value)) {
				return []byte(wire.ErrMemory)
			}
			c.info[i] = info
			return []byte(wire.OK)
		}
	}
	if !c.mayKeep(len(value)) {
		return []byte(wire.ErrMemory)
	}
	c.info = append(c.info, info)
	return []byte(wire.OK)
}
