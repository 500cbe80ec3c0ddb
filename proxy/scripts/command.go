package scripts

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"

	"github.com/tidwall/redcon"
)

// A Session is what SCRIPT needs of the session of its client. TryOpen and Ask are
// session.Session's.
type Session interface {
	TryOpen() (refusal wire.Error)
	Ask(command []byte) (reply []byte, ok bool)
	// RunOnMasters runs SCRIPT on the masters. The reply is valid until the next call.
	RunOnMasters(args [][]byte) (reply []byte)
	// KillOnMasters reports whether a script ran on a master.
	KillOnMasters() (killed bool)
}

// Perform performs SCRIPT LOAD, EXISTS, FLUSH and KILL on both planes, or on the masters alone
// while no upstream can be reached. It returns the reply, or an error of its own. Both are
// empty if the session must end instead.
func (c *Cache) Perform(s Session, name string, cmd wire.Command, spec *command.Spec) (reply []byte, refusal wire.Error) {
	alone := s.TryOpen() != ""
	if alone {
		refusal = refuses(name, cmd.Args, spec)
	} else {
		var ok bool
		if reply, ok = s.Ask(cmd.AsArray()); !ok || resp.IsError(reply) && name != "script|kill" {
			return reply, ""
		}
	}
	if refusal != "" {
		return nil, refusal
	}
	switch name {
	case "script|load":
		if alone { // the masters check whether the script compiles
			reply = s.RunOnMasters(cmd.Args)
		}
		if !resp.IsError(reply) {
			c.Learn(name, cmd.Args)
		}
	case "script|exists":
		reply = c.existsOnBoth(reply, cmd.Args[2:])
	case "script|flush":
		c.Flush()
		if onMasters := s.RunOnMasters(cmd.Args); alone {
			reply = onMasters
		}
	case "script|kill":
		switch killed := s.KillOnMasters(); {
		case killed:
			reply = []byte(wire.OK)
		case alone:
			return nil, wire.ErrScriptKill
		}
	}
	return reply, ""
}

// refuses returns the error that an upstream would answer, or "".
func refuses(name string, args [][]byte, spec *command.Spec) wire.Error {
	if name == "script|flush" && (len(args) > 3 || len(args) == 3 && !wire.IsWord(args[2], "SYNC") && !wire.IsWord(args[2], "ASYNC")) {
		return wire.ErrScriptFlush
	}
	return spec.Check(args)
}

// existsOnBoth returns the reply to SCRIPT EXISTS: 1 for each script that both planes can
// run. fromUpstream is the upstream's reply, nil if there is no upstream.
func (c *Cache) existsOnBoth(fromUpstream []byte, names [][]byte) []byte {
	upstream, _ := resp.Elements(fromUpstream)
	reply := redcon.AppendArray(nil, len(names))
	for i, sha := range names {
		exists := ":0\r\n"
		if c.get(sha, false) != nil && (i >= len(upstream) || string(upstream[i]) == ":1\r\n") {
			exists = ":1\r\n"
		}
		reply = append(reply, exists...)
	}
	return reply
}

// Learn stores the text of the script in a command, if there is one, so that every client can
// run it on lock keys with EVALSHA. It returns the Shape of the script that the command runs
// or loads.
func (c *Cache) Learn(name string, args [][]byte) Shape {
	switch {
	case (name == "eval" || name == "eval_ro") && len(args) > 1:
		return c.keep(args[1], false)
	case name == "script|load" && len(args) == 3:
		return c.keep(args[2], false)
	case name == "evalsha" && len(args) > 1:
		if script := c.get(args[1], false); script != nil {
			return script.shape
		}
	}
	return Shape{}
}
