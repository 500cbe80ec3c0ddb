package command

import (
	"maps"
	"strings"
)

// Spec is what the table knows of one command or subcommand. It is
// shared and never changes.
type Spec struct {
	Name        string // lower case, a subcommand's with its container's: "xinfo|stream"
	Arity       int    // as Redis counts: the name included, negative for at least so many
	flags       commandFlags
	traits      Traits
	keys        []keySpec
	subcommands map[string]*Spec // by their own lower-case name; nil: none
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

// ArityOK says whether a command of n arguments, its name included, has as
// many as it may.
func (s *Spec) ArityOK(n int) bool {
	if s.Arity >= 0 {
		return n == s.Arity
	}
	return n >= -s.Arity
}

// Readonly: it changes nothing. Scripts other than the _RO forms are neither
// readonly nor write.
func (s *Spec) Readonly() bool { return s.flags&flagReadonly != 0 }

// Write: it may change keys.
func (s *Spec) Write() bool { return s.flags&flagWrite != 0 }

// Blocking: its reply may wait for another client.
func (s *Spec) Blocking() bool { return s.flags&flagBlocking != 0 }

// NoMulti: it is refused inside MULTI.
func (s *Spec) NoMulti() bool { return s.flags&flagNoMulti != 0 }

// joined is s with the subcommands that only other has, or other where s is nil.
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
