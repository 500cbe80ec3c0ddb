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

// A section measures one thing and adds its rows to the table.
type section struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

// bench is one run of the command.
type bench struct {
	rounds   int
	length   time.Duration // of one measurement
	progress io.Writer
	building []string // flags for building the proxy

	idleClients          int
	forwardedIdleClients int           // of which each has a connection to the upstream too
	largeReply           int           // bytes
	contenders           int           // clients that want the same lock
	masterTimeout        time.Duration // where it matters; elsewhere it is generous
	patience             time.Duration // with memory that is not back at its level

	scratch string // a directory that is removed when the run ends
	binary  string // the proxy
	section string // the one that runs
	rows    []row
	ending  []func() // what the running section has to stop, in reverse order
}

// run runs the chosen sections. A section that fails does not keep the others
// from running; rows it had added stay.
func (b *bench) run(ctx context.Context, chosen *regexp.Regexp) error {
	scratch, err := os.MkdirTemp("", "redlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b.scratch = scratch
	if b.binary, err = buildProxy(ctx, scratch, b.building...); err != nil {
		return err
	}
	var failures []error
	for _, s := range sections {
		if !chosen.MatchString(s.name) {
			continue
		}
		b.section = s.name
		began := time.Now()
		err := s.run(ctx, b)
		b.endSection()
		if ctx.Err() != nil {
			return errors.Join(append(failures, ctx.Err())...)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", s.name, err))
		}
		b.say("%s took %v", s.name, time.Since(began).Round(time.Second))
	}
	return errors.Join(failures...)
}

// atEnd has stop called when the running section is over.
func (b *bench) atEnd(stop func()) { b.ending = append(b.ending, stop) }

func (b *bench) endSection() {
	for i := len(b.ending) - 1; i >= 0; i-- {
		b.ending[i]()
	}
	b.ending = nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// figures are what one measurement came to, by name.
type figures map[string]float64

// A contestant is one of the things that are compared.
type contestant struct {
	name    string
	measure func(ctx context.Context, length time.Duration) (figures, error)
}

// results are the figures of each contestant, one for each round.
type results map[string][]figures

// alternate lets the contestants take turns. Each round begins with another
// one, so that none always follows the same.
func (b *bench) alternate(ctx context.Context, contestants ...contestant) (results, error) {
	for _, c := range contestants { // connections are made, caches are filled
		if _, err := c.measure(ctx, b.length/5); err != nil && !errors.Is(err, errNoTurn) {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	all := results{}
	for round := range b.rounds {
		for i := range contestants {
			c := contestants[(i+round)%len(contestants)]
			measured, err := c.measure(ctx, b.length)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			b.say("%s, round %d, %s: %v", b.section, round+1, c.name, measured)
			all[c.name] = append(all[c.name], measured)
		}
	}
	return all, nil
}

// of is one figure of one contestant.
func (r results) of(contestant, figure string) spread {
	var s spread
	for _, each := range r[contestant] {
		s = append(s, each[figure])
	}
	return s
}

// ratio divides a figure of one contestant by that of another, round by round.
func (r results) ratio(figure, contestant, to string) spread {
	return r.of(contestant, figure).over(r.of(to, figure))
}
