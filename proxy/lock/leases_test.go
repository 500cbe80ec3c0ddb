package lock

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/lease"
	"redlock-proxy/redlock"
)

// newLeasingPlane is a plane whose rules renew every lock, and the client of a connection.
func newLeasingPlane(t *testing.T, answer func(request any) redlock.Outcome) (fakeLockerPlane, *lease.Holder) {
	p := newFakeLockerPlane(answer)
	p.Leases = lease.New(lease.Config{
		Locker: p.locker,
		Rule:   func(int, []byte) lease.Rule { return lease.Rule{Renew: time.Hour} },
		Limits: func() lease.Limits { return lease.Limits{MasterTimeout: time.Second} },
		Log:    slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { p.Leases.Close(t.Context()) })
	return p, p.Leases.NewHolder(func() {})
}

func leaseEffect(change redlock.Change, value string, ttl time.Duration) redlock.Outcome {
	e := redlock.Effect{Key: []byte("k"), Change: change, TTL: ttl}
	if value != "" {
		e.Value = []byte(value)
	}
	return redlock.Outcome{Verdict: redlock.Won, Reply: []byte(":1\r\n"), Effects: []redlock.Effect{e}}
}

// TestWhichCommandsBeginAndEndLeases has a row for each command. With a lease before it,
// the client's connection had taken the lock.
func TestWhichCommandsBeginAndEndLeases(t *testing.T) {
	const ttl = time.Hour
	created, hash := leaseEffect(redlock.KeyCreated, "v", ttl), leaseEffect(redlock.KeyCreated, "", ttl)
	held, brief := leaseEffect(redlock.KeyCreated, "", ttl), leaseEffect(redlock.KeyCreated, "", ttl)
	held.Effects[0].Holder, brief.Effects[0].Holder = []byte("a-uuid-of-many-bytes:17"), []byte("17")
	for _, row := range []struct {
		command string
		outcome redlock.Outcome
		before  bool
		after   int64
	}{
		{"SET k v NX PX 3600000", fakeLockerWon, false, 1},
		{"SET k v NX PX 3600000", fakeLockerLost, false, 0},
		{"SET k v NX PX 3600000", fakeLockerNoQuorum, false, 0},
		{"SET k v NX PX 3600000", fakeLockerRefused, false, 0},
		{"SET k v NX GET EX 3600", fakeLockerWon, false, 1},
		{"SETNX k v", fakeLockerWon, false, 1},
		{"EVAL script 1 k", created, false, 1},
		{"EVAL script 1 k", hash, false, 0},
		{"EVAL script 1 k", held, false, 1},
		{"EVAL script 1 k", brief, false, 0},
		{"EVAL script 1 k", fakeLockerReply(":0\r\n"), false, 0},
		{"SET k v PX 3600000", created, false, 0}, // no acquire: it overwrites any lock
		{"LPUSH k v", created, false, 0},

		{"SET k v NX PX 3600000", fakeLockerWon, true, 1}, // anew
		{"SET k v NX PX 3600000", fakeLockerLost, true, 1},
		{"EXPIRE k 7200", fakeLockerWon, true, 1},
		{"PERSIST k", fakeLockerWon, true, 1},
		{"GET k", fakeLockerValue(redlock.Won, "v"), true, 1},
		{"EVAL script 1 k", leaseEffect(redlock.KeyProlonged, "", ttl), true, 1},
		{"EVAL script 1 k", leaseEffect(redlock.KeyReentered, "", ttl), true, 1},
		{"EVAL script 1 k", leaseEffect(redlock.KeyReplaced, "", ttl), true, 0},
		{"EVAL script 1 k", leaseEffect(redlock.KeyDeleted, "", 0), true, 0},
		{"SET k w XX PX 100", leaseEffect(redlock.KeyReplaced, "", ttl), true, 0},
		{"GETSET k w", leaseEffect(redlock.KeyReplaced, "", 0), true, 0},
		{"DEL k", fakeLockerWon, true, 0},
		{"DEL k", fakeLockerNoQuorum, true, 1}, // until its TTL is over
		{"DEL j k", fakeLockerWon, true, 0},
		{"UNLINK k", fakeLockerWon, true, 0},
		{"GETDEL k", fakeLockerValue(redlock.Won, "v"), true, 0},
		{"EXPIRE k 0", fakeLockerWon, true, 0},
		{"EXPIRE k 0 NX", fakeLockerReply(":0\r\n"), true, 1}, // it has a TTL already
	} {
		p, holder := newLeasingPlane(t, nil)
		if row.before {
			holder.Took(0, []byte("k"), []byte("v"), ttl, time.Now())
		}
		p.locker.answer = fakeLockerAnswers(row.outcome)
		call := fakeLockerCall(row.command)
		call.Leases = holder
		p.Do(t.Context(), nil, call)
		if held := p.Leases.Counts().Held; held != row.after {
			t.Errorf("%s, %+v: %d leases, want %d", row.command, row.outcome, held, row.after)
		}
		// Another client's release counts, too.
		call = fakeLockerCall("DEL k")
		p.locker.answer = nil
		p.Do(t.Context(), nil, call)
		if held := p.Leases.Counts().Held; held != 0 {
			t.Errorf("%s: %d leases after a release by another client", row.command, held)
		}
	}
}

// A release that got no quorum is the last that some clients do about a lock. If it was the
// holder's, the lock is renewed no more.
func TestALockThatItsHolderGaveUpIsNotRenewed(t *testing.T) {
	const ttl, long = time.Hour / 4, "a-token-of-many-bytes"
	attempted := func(value string) redlock.Outcome {
		o := fakeLockerNoQuorum
		o.Attempted = []redlock.Effect{{Key: []byte("k"), Change: redlock.KeyDeleted, Value: []byte(value)}}
		return o
	}
	mine, others, certain := attempted("v"), attempted("w"), attempted(long)
	for _, row := range []struct {
		command string // "MULTI" before commands of a transaction
		outcome redlock.Outcome
		deleted string // on a master
		another bool   // connection
		renewed bool
	}{
		{"DEL k", fakeLockerNoQuorum, "", false, false},
		{"MULTI;DEL k", fakeLockerNoQuorum, "", false, false},
		{"MULTI;DEL k", fakeLockerNoQuorum, "", true, true},
		{"MULTI;UNLINK k", fakeLockerNoQuorum, "", false, false}, // after it was watched
		{"MULTI;EVAL unknown 1 k v", fakeLockerNoQuorum, "v", false, false},
		{"MULTI;PEXPIRE k 900000", fakeLockerNoQuorum, "", false, true},
		{"DEL j k", fakeLockerNoQuorum, "", false, false},
		{"GETDEL k", fakeLockerNoQuorum, "", false, false},
		{"PEXPIRE k 0", fakeLockerNoQuorum, "", false, false},
		{"EVAL release 1 k v", mine, "", false, false},
		{"DEL k", fakeLockerNoQuorum, "", true, true},
		{"EVAL release 1 k v", mine, "", true, true}, // it may be a constant
		{"EVAL release 1 k " + long, certain, "", true, false},
		{"EVAL release 1 k w", others, "", false, true}, // many threads may share a connection
		{"EVAL unknown 1 k v", fakeLockerNoQuorum, "", false, true},
		{"EVAL unknown 1 k v", fakeLockerNoQuorum, "v", false, false},
		{"EVAL unknown 1 k v", fakeLockerNoQuorum, "w", false, true},
		{"EVAL unknown 1 k " + long, fakeLockerNoQuorum, long, true, false}, // as a pool's
		{"MULTI;EVAL unknown 1 k " + long, fakeLockerNoQuorum, long, true, false},
		{"EVAL unknown 1 k " + long, fakeLockerNoQuorum, "another-token-of-many", true, true},
		{"EVAL unknown 1 k v", fakeLockerNoQuorum, "v", true, true}, // it may be a constant
		{"EVAL unknown 1 k", fakeLockerNoQuorum, long, true, true},  // it may delete whatever there is
		{"EXPIRE k 0 XX", fakeLockerNoQuorum, "v", false, false},
		{"EXPIRE k 0 XX", fakeLockerNoQuorum, "v", true, true},
		{"EXPIRE k 0 XX", fakeLockerNoQuorum, long, true, true}, // a stranger deletes what there is
		{"PEXPIRE k 900000", fakeLockerNoQuorum, "", false, true},
		{"GETSET k w", fakeLockerNoQuorum, "", false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, holder := newLeasingPlane(t, nil)
			defer p.Leases.Close(t.Context())
			value := "v"
			if strings.Contains(row.command, long) || row.deleted == long {
				value = long
			}
			holder.Took(0, []byte("k"), []byte(value), ttl, time.Now())
			if row.another {
				defer holder.Close(false)
				holder = p.Leases.NewHolder(func() {})
			}
			p.locker.answer = fakeLockerAnswers(row.outcome)
			p.locker.blind, p.locker.deleted = row.command == "MULTI;DEL k", row.deleted
			if command, multi := strings.CutPrefix(row.command, "MULTI;"); multi {
				p.Exec(t.Context(), nil, Transaction{Commands: []Command{fakeLockerCall(command)}, Leases: holder})
			} else {
				call := fakeLockerCall(row.command)
				call.Leases = holder
				p.Do(t.Context(), nil, call)
			}
			p.locker.answer = nil
			asked := len(p.locker.requests())
			time.Sleep(ttl - time.Second)
			synctest.Wait()
			if renewed := len(p.locker.requests()) > asked; renewed != row.renewed || !p.Leases.Any() {
				t.Errorf("%s: renewed is %v, want %v; leases: %v", row.command, renewed, row.renewed, p.Leases.Any())
			}
			holder.Close(false)
		})
	}
}

func TestATransactionThatTakesALockBeginsALease(t *testing.T) {
	p, holder := newLeasingPlane(t, fakeLockerAnswers(leaseEffect(redlock.KeyCreated, "v", time.Hour)))
	commands := []Command{fakeLockerCall("SETNX k v"), fakeLockerCall("EXPIRE k 3600")}
	p.Exec(t.Context(), nil, Transaction{Commands: commands, Leases: holder})
	if held := p.Leases.Counts().Held; held != 1 {
		t.Errorf("%d leases", held)
	}
}
