package route

import (
	"maps"
	"strings"

	"redlock-proxy/proxy/wire"
)

// Spec describes one command or subcommand. It is shared and never changes.
type Spec struct {
	Name        string // in lower case; a subcommand has its container's in front: "xinfo|stream"
	Arity       int    // the number of arguments with the name; negative: the least number, times -1
	flags       commandFlags
	traits      Traits
	keys        []keySpec
	onlyKey     int              // the index of the one key of a usual command; 0: see keys. It makes routing cheap
	subcommands map[string]*Spec // by name in lower case, without the container's; nil if there are none
}

type commandFlags uint8

const (
	flagReadonly commandFlags = 1 << iota
	flagWrite
	flagBlocking
	flagNoMulti
)

// flagNames maps the flags in a reply to COMMAND. It leaves out those that the proxy
// does not use.
var flagNames = map[string]commandFlags{
	"readonly": flagReadonly,
	"write":    flagWrite,
	"blocking": flagBlocking,
	"no_multi": flagNoMulti,
}

// ArityOK tells whether the command may have n arguments. Its name counts as one.
func (s *Spec) ArityOK(n int) bool {
	if s.Arity >= 0 {
		return n == s.Arity
	}
	return n >= -s.Arity
}

// Check returns Redis's error for an unknown command or subcommand, which a nil Spec is, or
// for a wrong number of arguments. It returns "" if there is none of them.
func (s *Spec) Check(args [][]byte) wire.Error {
	switch {
	case s == nil && len(args) > 1 && Builtin().Lookup(args[:1]) != nil:
		return wire.ErrUnknownSubcommand(args)
	case s == nil:
		return wire.ErrUnknownCommand(args)
	case !s.ArityOK(len(args)):
		return wire.ErrArity(s.Name)
	}
	return ""
}

// Readonly tells whether the command never changes data. EVAL, EVALSHA and FCALL are
// neither readonly nor write; their _RO forms are readonly.
func (s *Spec) Readonly() bool { return s.flags&flagReadonly != 0 }

// Write tells whether the command may change keys.
func (s *Spec) Write() bool { return s.flags&flagWrite != 0 }

// Blocking tells whether the command's reply may wait for another client.
func (s *Spec) Blocking() bool { return s.flags&flagBlocking != 0 }

// NoMulti tells whether Redis refuses the command inside MULTI.
func (s *Spec) NoMulti() bool { return s.flags&flagNoMulti != 0 }

// joined returns s with the subcommands that only other has. It returns other if s
// is nil. It changes neither.
func (s *Spec) joined(other *Spec) *Spec {
	if s == nil {
		return other
	}
	both := s.subcommands
	for name, sub := range other.subcommands {
		if both[name] != nil {
			continue
		}
		if len(both) == len(s.subcommands) {
			both = maps.Clone(s.subcommands) // s must not change
		}
		if both == nil {
			// A command without subcommands in this table takes any first
			// argument. It stays so, whatever subcommands some server gives it.
			return s
		}
		both[name] = sub
	}
	if len(both) == len(s.subcommands) {
		return s
	}
	extended := *s
	extended.subcommands = both
	return &extended
}

// addSubcommand adds sub under its own name. Its full name is "container|name".
func (s *Spec) addSubcommand(sub *Spec) {
	_, own, found := strings.Cut(sub.Name, "|")
	if !found {
		own = sub.Name
	}
	if s.subcommands == nil {
		s.subcommands = make(map[string]*Spec)
	}
	s.subcommands[own] = sub
}
