package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// leasingLibraries send plain SET NX PX and scripts. They know nothing of renewals: Redisson's
// own begin only where no lease time is given. Its lock is a hash, which keeps its TTL when
// its client is killed.
var leasingLibraries = []string{"phpredis by hand", "Jedis 8.0.2 by hand", "redis-py 8.1.0", redissonLease}

const redissonLease = "Redisson 4.7.0 RLock"

// leaseTTL leaves a busy machine seconds for a renewal.
const leaseTTL = 8 * time.Second

// TestLease: with renew in the rule, a lock outlives its TTL while its client is connected.
// It ends with its TTL when the proxy is killed. With on_disconnect: release it ends when
// the client is killed. A client whose lock cannot be renewed gets an error.
func TestLease(t *testing.T) {
	t.Parallel()
	const brief, lasting = "*lock:brief*", "*lock:*"
	options := rig.Options{
		Rules: []string{brief, lasting}, MasterTimeout: time.Second,
		RuleMore: map[string]string{brief: "on_disconnect: release", lasting: "renew: 10m"},
	}
	c := rig.StartCluster(t, options)
	options.NotNew = true
	each := func(t *testing.T, test func(x leasing)) {
		for i, name := range leasingLibraries {
			library := libraryNamed(t, name)
			t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
				t.Parallel()
				test(leasing{&waitingLine{T: t, library: library, program: library.program(t)}, c, fmt.Sprint(i)})
			})
		}
	}
	t.Run("renewed", func(t *testing.T) {
		each(t, func(x leasing) {
			x.lasts()
			if x.library.name() != redissonLease {
				x.endsWithItsClient()
			}
			x.endsWithItsProxy(options)
		})
	})
	for i, name := range leasingLibraries { // each stops the masters of all
		t.Run("lost "+strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			library := libraryNamed(t, name)
			leasing{&waitingLine{T: t, library: library, program: library.program(t)}, c, fmt.Sprint(i)}.isLost()
		})
	}
}

// A leasing is clients of one library, whose locks the proxy renews.
type leasing struct {
	*waitingLine
	cluster *rig.Cluster
	mark    string // of this library's locks
}

func (x leasing) lasts() {
	lock := "lock:lasting-" + x.mark
	holder, other := x.client("the holder", x.cluster.Proxy), x.client("the other", x.cluster.Proxy)
	x.says(holder, "yes", "acquire", lock, leaseTTL.Milliseconds())
	for began := time.Now(); time.Since(began) < leaseTTL+4*time.Second; rig.Pause(x.Context(), 200*time.Millisecond) {
		x.refused(other, lock)
	}
	x.says(holder, "yes", "release", lock)
	x.says(other, "yes", "acquire", lock, leaseTTL.Milliseconds())
	x.says(other, "yes", "release", lock)
}

func (x leasing) endsWithItsClient() {
	lock := "lock:brief-" + x.mark
	holder, other := x.client("the holder", x.cluster.Proxy), x.client("the other", x.cluster.Proxy)
	x.takes(holder, lock)
	x.refused(other, lock)
	holder.kill()
	x.becomesFree(other, lock)
}

func (x leasing) endsWithItsProxy(options rig.Options) {
	lock := "lock:orphan-" + x.mark
	doomed := x.cluster.AddProxy(x, options)
	holder, other := x.client("the holder", doomed), x.client("the other", x.cluster.Proxy)
	x.says(holder, "yes", "acquire", lock, leaseTTL.Milliseconds())
	rig.WaitFor(x, "a renewal", func() error {
		if n := doomed.Metric(x, `redlock_lease_renewals_total{result="renewed"}`); n == "0" {
			return fmt.Errorf("%s renewals", n)
		}
		return nil
	})
	doomed.Proc.Kill()
	x.becomesFree(other, lock)
	doomed.Start(x)
	rig.WaitFor(x, "the proxy is ready again", doomed.Ready)
}

// isLost stops so many masters that nobody can renew the lock. They come back, but the
// client learns of it all the same.
func (x leasing) isLost() {
	lock := "lock:lost-" + x.mark
	holder := x.client("the holder", x.cluster.Proxy)
	x.says(holder, "yes", "acquire", lock, leaseTTL.Milliseconds())
	before := x.cluster.Proxy.Metric(x, "redlock_leases_lost_total")
	stopped := x.cluster.Masters[:len(x.cluster.Masters)/2+1]
	for _, master := range stopped {
		master.Pause()
		defer master.Resume()
	}
	rig.WaitFor(x, "the client is disconnected", func() error {
		if now := x.cluster.Proxy.Metric(x, "redlock_leases_lost_total"); now == before {
			return fmt.Errorf("%s clients have lost a lock", now)
		}
		return nil
	})
	want := "QUORUMLOST " // the library connects again, while the masters are still stopped
	if x.library.library == "Jedis" {
		want = "JedisConnectionException: Unexpected end of stream"
	}
	if answer, err := holder.ask("release", lock); !errors.As(err, new(saidError)) || !strings.Contains(err.Error(), want) {
		x.Errorf("the client that lost its lock is answered %q (%v), want an error with %q", answer, err, want)
	}
	for _, master := range stopped {
		master.Resume()
	}
	rig.WaitFor(x, "the proxy is ready again", x.cluster.Proxy.Ready)
}

// refused requires that another client does not get the lock. On a busy machine too few
// masters may answer in time. Then it asks again.
func (x leasing) refused(other *conformanceClient, lock string) {
	x.Helper()
	rig.WaitFor(x, "an answer about "+lock, func() error {
		answer, err := other.ask("acquire", lock, leaseTTL.Milliseconds())
		if err == nil && answer != "no" || err != nil && !strings.Contains(err.Error(), "QUORUMLOST ") {
			x.Fatalf("%s client is answered %q about a lock that is held: %v", other.name, answer, err)
		}
		return err
	})
}

// becomesFree polls until another client gets the lock, and releases it.
func (x leasing) becomesFree(other *conformanceClient, lock string) {
	rig.WaitFor(x, lock+" is free", func() error {
		answer, err := other.ask("acquire", lock, leaseTTL.Milliseconds())
		if err == nil && answer != "yes" {
			err = fmt.Errorf("%q", answer)
		}
		return err
	})
	x.says(other, "yes", "release", lock)
}
