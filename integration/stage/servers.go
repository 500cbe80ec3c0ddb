package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// server returns a server by its name, and starts it if it is new.
func (s *stage) server(name string) *rig.Server {
	s.t.Helper()
	if s.servers[name] == nil {
		if !serverName.MatchString(name) {
			s.t.Fatalf("there is no server %s", name)
		}
		var config []string
		if name[0] == 'm' {
			config = s.config
		}
		r := rig.StartServer(s.t, name, config...)
		s.servers[name] = r
		if name == "upstream" {
			s.cluster.Upstream = r
		}
	}
	return s.servers[name]
}

// masters returns the masters that have been named, in their order.
func (s *stage) masters() (all []*rig.Server) {
	for i := range 10 {
		if r := s.servers[fmt.Sprint("m", i)]; r != nil {
			all = append(all, r)
		}
	}
	return all
}

// strike lets something happen to servers: names, and a verb.
func (s *stage) strike(words []string) {
	verb := words[len(words)-1]
	for _, name := range words[:len(words)-1] {
		if verb == "disk" {
			r := rig.NewServer(s.t, name, s.config...)
			r.SmallDisk(s.t)
			r.Start(s.t)
			s.servers[name] = r
			continue
		}
		r := s.server(name)
		switch verb {
		case "start":
			if !r.Proc.Running() {
				r.Start(s.t)
			}
		case "end":
			_, err := r.Proc.Stop(rig.Patience)
			s.must(err)
		case "kill":
			r.Kill()
		case "forget":
			r.Kill()
			r.Start(s.t)
		case "flush":
			s.must(r.Direct.FlushAll(s.t.Context()).Err())
		case "cut": // the answer may be cut, too
			_ = r.Direct.Do(s.t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err()
		case "full":
			r.FillDisk(s.t)
		case "room":
			r.EmptyDisk(s.t)
		case "unsaved":
			r.LoseDisk(s.t)
		case "pause":
			r.Pause()
			s.t.Cleanup(r.Resume)
		case "resume":
			r.Resume()
		default:
			s.t.Fatalf("nobody knows how servers %s", verb)
		}
	}
}

// restartServer restarts a master as the handbook says.
func (s *stage) restartServer(r *rig.Server, name string) {
	await := func(states ...string) {
		for _, p := range s.proxies {
			rig.WaitFor(s.t, name+" is seen as "+states[0], func() error {
				if state := p.StateOf(s.t, p.reaches(name)); !slices.Contains(states, state) {
					return fmt.Errorf("it is %s", state)
				}
				return nil
			})
		}
	}
	_, err := r.Proc.Stop(rig.Patience)
	s.must(err)
	await("unreachable")
	s.goesOn(s.at...)
	r.Start(s.t)
	await("quarantined", "voting")
	s.goesOn(s.at...)
	await("voting")
}

// command asks servers themselves, which must answer alike.
func (s *stage) command(names []string, text string) (came string) {
	for i, name := range names {
		var args []any
		for _, word := range corpus.Words(text) {
			args = append(args, word)
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), rig.Patience)
		defer cancel()
		reply, err := s.server(name).Direct.Do(ctx, args...).Result()
		again := fmt.Sprint(reply)
		if err == redis.Nil {
			again = "nil"
		} else if err != nil {
			again = "-" + err.Error()
		}
		if i > 0 && again != came {
			s.t.Errorf("%s answers %s, and the others %s", name, again, came)
		}
		came = again
	}
	return came
}

// values returns what the masters hold.
func (s *stage) values(key string) (all []string) {
	for _, r := range s.masters() {
		if !r.Proc.Running() {
			all = append(all, "dead")
			continue
		}
		value, there := r.Value(s.t, key)
		if !there {
			value = "-"
		}
		all = append(all, value)
	}
	return all
}

func (s *stage) markers() string {
	var versions []string
	for _, value := range s.values("redlock-proxy:master") {
		version, _, _ := strings.Cut(value, " ")
		versions = append(versions, version)
	}
	return strings.Join(versions, " ")
}

// held tells which masters hold a key. A command has its verdict before the slowest masters have executed it, so what is
// true of all is true of a quorum, too.
func (s *stage) held(key string) string {
	return s.poll(func() (answers []string) {
		values := s.values(key)
		count := map[string]int{}
		for _, value := range values {
			count[value]++
		}
		for value, n := range count {
			switch {
			case value == "-" && n+count["dead"] == len(values):
				return []string{"nobody"}
			case value == "-" || value == "dead":
			case n == len(values):
				return []string{value + " by all", value + " by a quorum"}
			case n > len(values)/2:
				return []string{value + " by a quorum"}
			}
		}
		return []string{strings.Join(values, " ")}
	})
}

// alike tells whether all masters have the keys as the server plain has them.
func (s *stage) alike(keys []string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), rig.Patience)
	defer cancel()
	want, err := s.server("plain").States(ctx, keys)
	s.must(err)
	for _, r := range s.masters() {
		states, err := r.States(ctx, keys)
		s.must(err)
		for _, key := range keys {
			if !states[key].Matches(want[key]) {
				return fmt.Sprintf("%s has %s as %s, and plain as %s", r.Name, key, states[key], want[key])
			}
		}
	}
	return "yes"
}

// link lets something happen to links of a proxy to masters.
func (s *stage) link(words []string) {
	for i, word := range words {
		found := linkName.FindStringSubmatch(word)
		if found == nil {
			break
		}
		p := s.proxy(found[1])
		if len(p.links) == 0 {
			s.t.Fatalf("%s has no links", found[1])
		}
		for master, link := range p.links {
			if found[2] != "all" && found[2] != master {
				continue
			}
			verb := words[slices.IndexFunc(words, func(w string) bool { return !linkName.MatchString(w) }):]
			switch verb[0] {
			case "cut":
				link.SetDown(true)
			case "mute":
				link.Mute(true, true)
			case "deaf": // the server hears, and what it says is lost
				link.Mute(false, true)
			case "heal":
				link.SetDown(false)
				link.Mute(false, false)
				link.Delay(0)
			case "slow":
				d, err := time.ParseDuration(verb[1])
				s.must(err)
				link.Delay(d)
			default:
				s.t.Fatalf("nobody knows how links %s", strings.Join(words[i+1:], " "))
			}
		}
	}
}
