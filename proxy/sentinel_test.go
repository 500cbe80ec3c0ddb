package proxy

import (
	"errors"
	"slices"
	"testing"
)

// The latest configuration counts, whoever answers first and however many
// still name the master of before.
func TestAgreedMaster(t *testing.T) {
	named := func(master string, epoch int64) sentinelAnswer { return sentinelAnswer{master: master, epoch: epoch} }
	silent := sentinelAnswer{sentinel: "s", err: errors.New("no answer")}
	for _, row := range []struct {
		name    string
		answers []sentinelAnswer
		want    string
		enough  bool // of three Sentinels
	}{
		{"all agree", []sentinelAnswer{named("a", 1), named("a", 1), named("a", 1)}, "a", true},
		{"one is enough", []sentinelAnswer{silent, named("a", 1), silent}, "a", false},
		{"two are a majority", []sentinelAnswer{named("a", 1), named("a", 1)}, "a", true},
		{"one was cut off", []sentinelAnswer{named("a", 1), named("b", 2)}, "b", false},
		{"two were cut off", []sentinelAnswer{named("a", 1), silent, named("b", 2)}, "b", false},
		{"none answers", []sentinelAnswer{silent, silent, silent}, "", false},
	} {
		got, err := agreedMaster("m", row.answers)
		if got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
		if enough := majorityAgrees(3)(row.answers); enough != row.enough {
			t.Errorf("%s: enough: %v", row.name, enough)
		}
	}
}

func TestSentinelURL(t *testing.T) {
	e, err := parseEndpoint("sentinel://app:p%40ss%2Cw@[::1]:5000,b,10.0.0.3:26380/my.master-1?db=3&sentinel_user=watch&sentinel_password=s%26t")
	if err != nil {
		t.Fatal(err)
	}
	if e.username != "app" || e.password != "p@ss,w" || e.db != 3 || e.name != "my.master-1@[::1]:5000" || e.tls != nil {
		t.Errorf("read as %+v, user %q, password %q", e, e.username, e.password)
	}
	g := e.sentinels
	if g.name != "my.master-1" || g.entry.username != "watch" || g.entry.password != "s&t" ||
		!slices.Equal(g.addresses, []string{"[::1]:5000", "b:26379", "10.0.0.3:26380"}) {
		t.Errorf("the group is read as %+v", g)
	}
	if e, err = parseEndpoint("sentinels://a/m"); err != nil || e.tls == nil || e.sentinels.entry.tls != e.tls {
		t.Errorf("with TLS: %+v, %v", e, err)
	}
}
