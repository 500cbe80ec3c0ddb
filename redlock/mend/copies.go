package mend

import (
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
)

// copies are what the masters hold under a key at one moment.
type copies []quorum.Answer[effect.Image]

// strays tells whether nobody can hold the lock although there are copies. That is so if fewer
// masters than a quorum hold one, even counting all masters that gave no answer or may have
// forgotten it. The quorum is that of one master less, because the number of masters may have
// grown by one since the lock was granted.
func (c copies) strays() bool {
	votes := quorum.Count(c, effect.Image.There)
	return c.any() && votes.Masters-votes.Refused < quorum.Size(votes.Masters-1)
}

// any tells whether any master showed a copy.
func (c copies) any() bool {
	for _, a := range c {
		if a.State.Heard() && a.Value.There() {
			return true
		}
	}
	return false
}

// ill tells whether the copies must be mended if they stay as they are.
func (c copies) ill() bool {
	if c.strays() {
		return true
	}
	for _, a := range c {
		for _, b := range c {
			if a.State.Heard() && b.State.Heard() && a.Value.There() && b.Value.There() && !effect.SameContent(a.Value, b.Value) {
				return true
			}
		}
	}
	return false
}

// unchangedSince returns the copies that are as they were before. all is true if every
// copy is, and every master may vote.
func (c copies) unchangedSince(before copies) (same []effect.Image, all bool) {
	same, all = make([]effect.Image, len(c)), true
	for i, a := range c {
		if a.State.Heard() && before[i].State.Heard() && a.Value.UnchangedSince(before[i].Value) {
			same[i] = a.Value
		}
		all = all && a.State == quorum.Answered && before[i].State == quorum.Answered && a.Value.UnchangedSince(before[i].Value)
	}
	return same, all
}

// areAll tells whether quiet contains all copies.
func (c copies) areAll(quiet []effect.Image) bool {
	for i, a := range c {
		if a.State.Heard() && a.Value.There() && !quiet[i].There() {
			return false
		}
	}
	return true
}

// model is the copy that all masters must get: the one that a quorum has, or else the one that unites all, or
// else that of the largest group of equals.
func (c copies) model() effect.Image {
	most, t := quorum.Largest(c, effect.Image.There, effect.SameContent)
	if t.Granted >= quorum.Size(len(c)) {
		return most
	}
	var all []effect.Image
	for _, a := range c {
		if a.Value.There() {
			all = append(all, a.Value)
		}
	}
	if united, _, ok := effect.Unite(quorum.Size(len(c)), all...); ok {
		return united
	}
	return most
}

// A remedy is what to do about copies after a second look.
type remedy struct {
	quiet  []effect.Image // each master's copy if it has not changed
	change quorum.Set     // the masters whose copy must become model
	model  effect.Image
	again  bool // copies have changed, so another look may find more to do
}

// remedy decides what to do about copies that looked like before at the first look.
func (c copies) remedy(before copies) remedy {
	if len(c) != len(before) { // the number of masters has changed
		return remedy{again: true}
	}
	quiet, all := c.unchangedSince(before)
	r := remedy{quiet: quiet, model: effect.Missing, again: !c.areAll(quiet)}
	switch {
	case c.strays():
	case all:
		r.model = c.model()
	default:
		return r
	}
	for i, seen := range quiet {
		if seen.There() && !effect.SameContent(seen, r.model) {
			r.change |= 1 << i
		}
	}
	return r
}
