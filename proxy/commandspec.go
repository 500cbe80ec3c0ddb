package proxy

import (
	"maps"
	"strings"
)

// commandSpec is what the table knows of one command or subcommand. It is
// shared and never changes.
type commandSpec struct {
	name        string // lower case, a subcommand's with its container's: "xinfo|stream"
	arity       int    // as Redis counts: the name included, negative for at least so many
	flags       commandFlags
	traits      traits
	keys        []keySpec
	subcommands map[string]*commandSpec // by their own lower-case name; nil: none
}

type commandFlags uint8

const (
	flagReadonly commandFlags = 1 << iota
	flagWrite
	flagBlocking
	flagNoMulti
)

// flagNames are the flags of a COMMAND reply that matter here.
var flagNames = map[string]commandFlags{
	"readonly": flagReadonly,
	"write":    flagWrite,
	"blocking": flagBlocking,
	"no_multi": flagNoMulti,
}

// arityOK says whether a command of n arguments, its name included, has as
// many as it may.
func (s *commandSpec) arityOK(n int) bool {
	if s.arity >= 0 {
		return n == s.arity
	}
	return n >= -s.arity
}

// readonly: it changes nothing. Scripts other than the _RO forms are neither
// readonly nor write.
func (s *commandSpec) readonly() bool { return s.flags&flagReadonly != 0 }

// write: it may change keys.
func (s *commandSpec) write() bool { return s.flags&flagWrite != 0 }

// blocking: its reply may wait for another client.
func (s *commandSpec) blocking() bool { return s.flags&flagBlocking != 0 }

// noMulti: it is refused inside MULTI.
func (s *commandSpec) noMulti() bool { return s.flags&flagNoMulti != 0 }

// joined is s with the subcommands that only other has, or other where s is nil.
func (s *commandSpec) joined(other *commandSpec) *commandSpec {
	if s == nil {
		return other
	}
	both := s.subcommands
	for name, sub := range other.subcommands {
		if both[name] != nil {
			continue
		}
		if len(both) == len(s.subcommands) {
			both = maps.Clone(s.subcommands) // s stays as it is
		}
		if both == nil {
			// A command that takes any first argument in our table does not
			// become a container because some server made it one.
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

// addSubcommand files sub, whose full name is "container|name".
func (s *commandSpec) addSubcommand(sub *commandSpec) {
	_, own, found := strings.Cut(sub.name, "|")
	if !found {
		own = sub.name
	}
	if s.subcommands == nil {
		s.subcommands = make(map[string]*commandSpec)
	}
	s.subcommands[own] = sub
}
