package redlock

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// What the scripts that write markers do in each database, on a real server and
// on a fake one.

var writtenNow = regexp.MustCompile(`(since|turned)=\d{12,}`)

func TestFakeMasterWritesMarkersAsRedisDoes(t *testing.T) {
	live := startLiveMaster(t)
	m := marker{set: "s", member: 1, members: 3, epoch: 1, joined: []string{"1", "2@a%b", "1"}, run: "r", since: 5, quarantine: time.Second, longest: 7 * time.Second, before: 9 * time.Second, turned: 3}
	in := func(db int, change func(*marker)) marker {
		x := m
		x.db = db
		if change != nil {
			change(&x)
		}
		return x
	}
	text := func(db int, change func(*marker)) string { return in(db, change).String() }
	first := func(dbs string, since int, run string) string {
		return fmt.Sprintf("redlock-proxy/1 set=s member=1/3 epoch=1 joined=1,2@a%%b,1 run=%s since=%d quarantine=1000 longest=%d dbs=%s", run, since, since+1, dbs)
	}
	run := func(x *marker) { x.run = "before" }
	set := func(x *marker) { x.set = "another" }
	now := func(x *marker) { x.since, x.turned = sinceNow, turnNow }
	who := func(x *marker) { x.epoch, x.joined = 3, []string{"1", "3@%1", "1"} }
	soon := time.Duration(time.Now().Add(time.Hour).UnixNano())
	markers := map[int]string{0: text(0, nil), 1: text(1, nil), 2: text(2, run), 3: text(3, set), 4: "a client's", 5: text(0, nil), 15: text(15, nil)}
	ofFirst := map[int]string{0: first("0,1,2,3", 5, "r"), 1: first("0", 9, "r"), 2: first("0", 2, "before"), 7: first("0", 4, "r"), 8: "a client's", 9: text(9, set)}
	for name, row := range map[string]struct {
		own    int
		before map[int]string
		frames []byte
	}{
		"here":              {1, markers, mark{place: place{0, 1}, seen: markers[1], write: in(1, now)}.frames(soon)},
		"here, missing":     {6, markers, mark{place: place{0, 6}, write: in(6, now)}.frames(soon)},
		"lacking":           {0, markers, mark{place: place{0, 0}, seen: markers[0], kind: markLacking, write: in(0, now)}.frames(soon)},
		"all":               {0, markers, mark{place: place{0, 0}, seen: markers[0], kind: markAll, write: in(0, now)}.frames(soon)},
		"all, as new":       {0, nil, mark{place: place{0, 0}, kind: markAll, write: in(0, nil)}.frames(soon)},
		"not as it was":     {0, markers, mark{place: place{0, 0}, kind: markAll, write: in(0, now)}.frames(soon)},
		"too late":          {0, markers, mark{place: place{0, 0}, seen: markers[0], kind: markAll, write: in(0, now)}.frames(time.Hour)},
		"edit":              {0, markers, mark{place: place{0, 0}, seen: markers[0], kind: markEdit, write: in(0, who)}.frames(0)},
		"turn":              {0, markers, mark{place: place{0, 0}, seen: markers[0], kind: markEdit, turn: true, write: in(0, who)}.frames(0)},
		"edit, not as seen": {0, markers, mark{place: place{0, 0}, seen: "x", kind: markEdit, write: in(0, who)}.frames(0)},
		"upgrade":           {0, ofFirst, mark{place: place{0, 0}, seen: ofFirst[0], kind: markUpgrade, used: []int{0, 1, 2, 3}, write: in(0, func(x *marker) { x.turned = turnNow })}.frames(0)},
		"upgrade, unknown":  {0, ofFirst, mark{place: place{0, 0}, seen: ofFirst[0], kind: markUpgrade, write: m}.frames(0)},
		"raise":             {1, markers, raiseScript.append(nil, [][]byte{[]byte(MarkerKey)}, []byte("1"), []byte("9000"))},
		"raise in 0":        {0, markers, raiseScript.append(nil, [][]byte{[]byte(MarkerKey)}, []byte("0"), []byte("9000"))},
		"raise, missing":    {6, markers, raiseScript.append(nil, [][]byte{[]byte(MarkerKey)}, []byte("6"), []byte("9000"))},
	} {
		t.Run(name, func(t *testing.T) {
			directFake(func(fake *fakeSession) {
				for _, do := range []func(...string) []byte{live.do, fake.do} {
					for db := range fakeDatabases {
						do("SELECT", strconv.Itoa(db))
						do("DEL", MarkerKey)
						if v, ok := row.before[db]; ok {
							do("SET", MarkerKey, v)
						}
					}
					do("SELECT", strconv.Itoa(row.own))
				}
				args, _ := parseFrame(row.frames)
				var command []string
				for _, a := range args {
					command = append(command, string(a))
				}
				compare := func(what string, args ...string) {
					want, got := writtenNow.ReplaceAllString(string(live.do(args...)), "$1=T"), writtenNow.ReplaceAllString(string(fake.do(args...)), "$1=T")
					if got != want {
						t.Errorf("%s: the fake master says\n%q, and Redis\n%q", what, got, want)
					}
				}
				compare("the script", command...)
				compare("where it was called", "GET", MarkerKey)
				for db := range fakeDatabases {
					live.do("SELECT", strconv.Itoa(db))
					fake.do("SELECT", strconv.Itoa(db))
					compare(fmt.Sprintf("database %d", db), "GET", MarkerKey)
				}
			})
		})
	}
}

// A server whose user may not SELECT, in scripts or at all, has one database.
func TestMarkersWhereSelectIsForbidden(t *testing.T) {
	live := startLiveMaster(t)
	live.must("ACL", "SETUSER", "p", "on", ">p", "~*", "+@all", "-select")
	live.must("AUTH", "p", "p")
	m := marker{set: "s", member: 1, members: 1, epoch: 1, joined: []string{"1"}, run: "r", since: sinceNow}
	ask := mark{kind: markAll, write: m}.frames(time.Duration(time.Now().Add(time.Hour).UnixNano()))
	if done, err := parseDone(live.conn.ask(ask, 1)); !done || err != nil {
		t.Fatalf("the marker is not written: %v %v", done, err)
	}
	text, _ := resp.ParseBulk(live.must("GET", MarkerKey))
	if got, ok := parseMarker(string(text)); !ok || got.since == 0 {
		t.Errorf("%q", text)
	}
	edit := mark{seen: string(text), kind: markEdit, write: m}.frames(0)
	raise := raiseScript.append(nil, [][]byte{[]byte(MarkerKey)}, []byte("0"), []byte("9000"))
	for _, frames := range [][]byte{edit, raise} {
		if done, err := parseDone(live.conn.ask(frames, 1)); !done || err != nil {
			t.Errorf("%.60q: %v %v", frames, done, err)
		}
	}
}
