package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

// A section measures one thing and adds its rows to the table. It panics with a failure if it cannot go on.
type section struct {
	name string
	run  func(b *bench)
}

// A failure ends a section. Only the section's own goroutine may panic with it, by check or must.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](result T, err error) T {
	check(err)
	return result
}

// attempt returns why what it runs failed.
func attempt(run func()) (err error) {
	defer func() {
		switch over := recover().(type) {
		case nil:
		case failure:
			err = over.error
		default:
			panic(over)
		}
	}()
	run()
	return nil
}

// running ends when the run is interrupted.
var running = context.Background()

// bench is one run of the command.
type bench struct {
	rounds   int
	length   time.Duration // the length of one measurement
	progress io.Writer
	building []string // flags for building the proxy

	idleClients          int
	forwardedIdleClients int           // idle clients that each have an upstream connection, too
	largeReply           int           // bytes
	largeValues          int           // of 1 MB, in a pipeline
	contenders           int           // clients that contend for one lock
	heldLocks            int           // locks that are held while somebody lists them
	masterTimeout        time.Duration // for the sections where it matters; the others use a long one
	patience             time.Duration // the longest wait for memory to return to its level

	scratch string // a directory that is removed when the run ends
	binary  string // the proxy
	section string // the running section
	rows    []row
	ending  []func() // to call, in reverse order, when the running section ends
}

// run runs the chosen sections. If a section fails, the others still run, and its rows so
// far stay in the table.
func (b *bench) run(chosen *regexp.Regexp) error {
	scratch, err := os.MkdirTemp("", "redlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b.scratch = scratch
	if b.binary, err = buildProxy(scratch, b.building...); err != nil {
		return err
	}
	var failures []error
	for _, s := range sections {
		if !chosen.MatchString(s.name) {
			continue
		}
		b.section = s.name
		began := time.Now()
		err := attempt(func() { s.run(b) })
		b.endSection()
		if running.Err() != nil {
			return errors.Join(append(failures, running.Err())...)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", s.name, err))
		}
		b.say("%s took %v", s.name, time.Since(began).Round(time.Second))
	}
	return errors.Join(failures...)
}

// atEnd registers stop, to be called when the running section ends.
func (b *bench) atEnd(stop func()) { b.ending = append(b.ending, stop) }

func (b *bench) endSection() {
	for i := len(b.ending) - 1; i >= 0; i-- {
		b.ending[i]()
	}
	b.ending = nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// figures are the results of one measurement, by name.
type figures map[string]float64

// A contestant is one of the things that a section compares. It may panic with a failure.
type contestant struct {
	name    string
	measure func(length time.Duration) figures
}

// results are the figures of each contestant, one set for each round.
type results map[string][]figures

// alternate lets the contestants take turns. Each round begins with another contestant, so
// that none always follows the same one.
func (b *bench) alternate(contestants ...contestant) results {
	measure := func(c contestant, length time.Duration) (measured figures, err error) {
		if err = attempt(func() { measured = c.measure(length) }); err != nil {
			err = fmt.Errorf("%s: %w", c.name, err)
		}
		return measured, err
	}
	for _, c := range contestants { // a warm-up: it makes connections and fills caches
		if _, err := measure(c, b.length/5); !errors.Is(err, errNoTurn) {
			check(err)
		}
	}
	all := results{}
	for round := range b.rounds {
		for i := range contestants {
			c := contestants[(i+round)%len(contestants)]
			measured := must(measure(c, b.length))
			b.say("%s, round %d, %s: %v", b.section, round+1, c.name, measured)
			all[c.name] = append(all[c.name], measured)
		}
	}
	return all
}

// of returns one figure of one contestant.
func (r results) of(contestant, figure string) spread {
	var s spread
	for _, each := range r[contestant] {
		s = append(s, each[figure])
	}
	return s
}

// ratio divides a figure of one contestant by the same figure of another, round by round.
func (r results) ratio(figure, contestant, to string) spread {
	return r.of(contestant, figure).over(r.of(to, figure))
}

// compare adds a row with the ratio of one contestant's figure to another's.
func (b *bench) compare(all results, figure, unit, contestant, to, what string, wanted bar) {
	b.report(fmt.Sprintf("%s: %s / %s", what, contestant, to), all.ratio(figure, contestant, to), "x", wanted,
		medians(unit, all.of(contestant, figure), all.of(to, figure))+all.failures(contestant, to))
}
