package redlock

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/token"
	"redlock-proxy/redlock/toymaster"
)

// The scripts that write markers do the same in each database of a real server and of a
// fake one.

var writtenNow = regexp.MustCompile(`(since|turned)=\d{12,}`)

func TestToyMasterWritesMarkersAsRedisDoes(t *testing.T) {
	live := startLiveMaster(t)
	m := marker.Marker{Set: "s", Member: 1, Members: 3, Epoch: 1, Joined: []string{"1", "2@a%b", "1"}, Run: "r", Since: 5, Quarantine: time.Second, Longest: 7 * time.Second, Before: 9 * time.Second, Turned: 3}
	in := func(db int, change func(*marker.Marker)) marker.Marker {
		x := m
		x.DB = db
		if change != nil {
			change(&x)
		}
		return x
	}
	text := func(db int, change func(*marker.Marker)) string { return in(db, change).String() }
	run := func(x *marker.Marker) { x.Run = "before" }
	set := func(x *marker.Marker) { x.Set = "another" }
	now := func(x *marker.Marker) { x.Since, x.Turned = marker.SinceNow, marker.TurnNow }
	who := func(x *marker.Marker) { x.Epoch, x.Joined = 3, []string{"1", "3@%1", "1"} }
	more := func(x *marker.Marker) {
		x.Epoch, x.Members, x.Joined, x.Before, x.Token = 3, 4, []string{"1", "2@a%b", "1", "3+d/r"}, 99*time.Second, 1_900_000_000_000
	}
	less := func(x *marker.Marker) { more(x); x.Before, x.Token = time.Second, 5 }
	soon := time.Duration(time.Now().Add(time.Hour).UnixNano())
	markers := map[int]string{0: text(0, nil), 1: text(1, nil), 2: text(2, run), 3: text(3, set), 4: "a client's", 5: text(0, nil), 15: text(15, nil)}
	given := func(n int64) func(*marker.Marker) { return func(x *marker.Marker) { x.Token = n } }
	withToken := maps.Clone(markers)
	withToken[0], withToken[1] = text(0, given(1_800_000_000_007)), text(1, nil)
	resized := map[int]string{0: text(0, more), 1: text(1, more), 2: "a client's"}
	resized[0], _ = marker.CutToken(resized[0])
	mixed := map[int]string{0: text(0, nil), 1: text(1, nil), 7: resized[1]}
	allSwapped := map[int]string{0: text(1, nil), 1: withToken[0], 2: text(7, nil), 3: text(7, set), 7: text(2, run), 8: resized[0]}
	longer := func(x *marker.Marker) { x.Longest = time.Minute }
	earlier := func(x *marker.Marker) { x.Before = time.Hour }
	another := func(x *marker.Marker) { x.Set, x.Longest = "another", time.Hour }
	more5 := map[int]string{3: text(3, another), 5: text(5, longer), 7: "a client's longest=99999999"}
	before5 := map[int]string{5: text(5, earlier), 6: text(6, longer)}
	more0 := map[int]string{0: text(0, longer)}
	bare := in(0, nil)
	later := func(x *marker.Marker) { x.Quarantine = 90 * 365 * 24 * time.Hour }
	ask := func(db int, value string, raised int64) []byte {
		return resp.AppendEval(nil, token.Script, bytesOf([]string{"k", marker.Key}), []byte(value), resp.Decimal(raised), []byte("1800000000000"), resp.Decimal(int64(db)), []byte("real"))
	}
	for name, row := range map[string]struct {
		own    int
		before map[int]string
		frames []byte
	}{
		"here":                       {1, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 1}, Seen: markers[1], Marker: in(1, now)}, soon)},
		"here, missing":              {6, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 6}, Marker: in(6, now)}, soon)},
		"here, swapped":              {5, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{DB: 5}, Seen: markers[5], Marker: in(5, now)}, soon)},
		"here, all were swapped":     {0, allSwapped, master.AppendMark(nil, roster.Write{Seen: allSwapped[0], Marker: in(0, now)}, soon)},
		"lacking, swapped":           {0, allSwapped, master.AppendMark(nil, roster.Write{Seen: allSwapped[0], Kind: roster.WriteLacking, Marker: in(0, now)}, soon)},
		"all, swapped":               {0, allSwapped, master.AppendMark(nil, roster.Write{Seen: allSwapped[0], Kind: roster.WriteAll, Marker: in(0, now)}, soon)},
		"here, others tell more":     {0, more5, master.AppendMark(nil, roster.Write{Marker: in(0, now)}, soon)},
		"all, others told more":      {0, before5, master.AppendMark(nil, roster.Write{Kind: roster.WriteAll, Marker: in(0, now)}, soon)},
		"in 5, 0 tells more":         {5, more0, master.AppendMark(nil, roster.Write{Place: roster.Place{DB: 5}, Marker: in(5, now)}, soon)},
		"lacking":                    {0, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Seen: markers[0], Kind: roster.WriteLacking, Marker: in(0, now)}, soon)},
		"all":                        {0, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Seen: markers[0], Kind: roster.WriteAll, Marker: in(0, now)}, soon)},
		"all, as new":                {0, nil, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Kind: roster.WriteAll, Marker: in(0, nil)}, soon)},
		"not as it was":              {0, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Kind: roster.WriteAll, Marker: in(0, now)}, soon)},
		"too late":                   {0, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Seen: markers[0], Kind: roster.WriteAll, Marker: in(0, now)}, time.Hour)},
		"edit":                       {0, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Seen: markers[0], Kind: roster.EditAll, Marker: in(0, who)}, 0)},
		"turn":                       {0, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Seen: markers[0], Kind: roster.EditAll, Turn: true, Marker: in(0, who)}, 0)},
		"edit, more masters":         {0, withToken, master.AppendMark(nil, roster.Write{Seen: bare.String(), Kind: roster.EditAll, Marker: in(0, more)}, 0)},
		"edit, less known":           {0, withToken, master.AppendMark(nil, roster.Write{Seen: bare.String(), Kind: roster.EditAll, Marker: in(0, less)}, 0)},
		"edit, one is resized":       {0, mixed, master.AppendMark(nil, roster.Write{Seen: markers[0], Kind: roster.EditAll, Marker: in(0, more)}, 0)},
		"edit, not resized any more": {0, resized, master.AppendMark(nil, roster.Write{Seen: resized[0], Kind: roster.EditAll, Marker: in(0, who)}, 0)},
		"lacking, one is resized":    {0, mixed, master.AppendMark(nil, roster.Write{Seen: markers[0], Kind: roster.WriteLacking, Marker: in(0, now)}, soon)},
		"token, resized":             {0, resized, ask(0, "v", 1_900_000_000_008)},
		"edit, not as seen":          {0, markers, master.AppendMark(nil, roster.Write{Place: roster.Place{Master: 0, DB: 0}, Seen: "x", Kind: roster.EditAll, Marker: in(0, who)}, 0)},
		"raise":                      {1, markers, master.AppendRaise(nil, 1, 9*time.Second)},
		"raise in 0":                 {0, markers, master.AppendRaise(nil, 0, 9*time.Second)},
		"raise, 0 was flushed":       {1, map[int]string{1: text(1, nil)}, master.AppendRaise(nil, 1, 9*time.Second)},
		"raise, 0 was swapped":       {1, allSwapped, master.AppendRaise(nil, 1, 9*time.Second)},
		"raise, swapped":             {5, markers, master.AppendRaise(nil, 5, 9*time.Second)},
		"raise, missing":             {6, markers, master.AppendRaise(nil, 6, 9*time.Second)},

		"a token, all":              {0, withToken, master.AppendMark(nil, roster.Write{Seen: bare.String(), Kind: roster.WriteAll, Marker: in(0, now)}, soon)},
		"a larger token, all":       {0, withToken, master.AppendMark(nil, roster.Write{Seen: bare.String(), Kind: roster.WriteAll, Marker: in(0, given(1_900_000_000_000))}, soon)},
		"a smaller token, lacking":  {0, withToken, master.AppendMark(nil, roster.Write{Seen: bare.String(), Kind: roster.WriteLacking, Marker: in(0, given(1_700_000_000_000))}, soon)},
		"a token, here":             {1, withToken, master.AppendMark(nil, roster.Write{Place: roster.Place{DB: 1}, Seen: withToken[1], Marker: in(1, given(1_900_000_000_000))}, soon)},
		"a token, edit":             {0, withToken, master.AppendMark(nil, roster.Write{Seen: bare.String(), Kind: roster.EditAll, Turn: true, Marker: in(0, who)}, 0)},
		"a token, raise":            {1, withToken, master.AppendRaise(nil, 1, 9*time.Second)},
		"token":                     {0, withToken, ask(0, "v", 1_800_000_000_008)},
		"token, first":              {0, markers, ask(0, "v", 1_800_000_000_008)},
		"token, none on record":     {0, markers, ask(0, "v", 1_799_999_999_999)},
		"token, not larger":         {0, withToken, ask(0, "v", 1_800_000_000_007)},
		"token, another value":      {0, withToken, ask(0, "w", 1_800_000_000_008)},
		"token in 1":                {1, withToken, ask(1, "v", 1_800_000_000_008)},
		"token, another run":        {2, withToken, ask(2, "v", 1_800_000_000_008)},
		"token, another set":        {3, withToken, ask(3, "v", 1_800_000_000_008)},
		"token, no marker":          {6, withToken, ask(6, "v", 1_800_000_000_008)},
		"token, swapped":            {5, withToken, ask(5, "v", 1_800_000_000_008)},
		"token, 0 is in quarantine": {1, map[int]string{0: text(0, later), 1: text(1, nil)}, ask(1, "v", 1_800_000_000_008)},
		"token, 0 has no marker":    {1, map[int]string{1: text(1, nil)}, ask(1, "v", 1_800_000_000_008)},
		"token, 0 was swapped":      {1, map[int]string{0: text(2, nil), 1: text(1, nil)}, ask(1, "v", 1_800_000_000_008)},
		"token, 0 in another epoch": {1, map[int]string{0: text(0, who), 1: text(1, nil)}, ask(1, "v", 1_800_000_000_008)},
	} {
		t.Run(name, func(t *testing.T) {
			toy := newMaster("toy").Direct()
			for _, do := range []func(...string) []byte{live.do, toy.Do} {
				for db := range 16 {
					do("SELECT", strconv.Itoa(db))
					do("DEL", marker.Key)
					if v, ok := row.before[db]; ok {
						do("SET", marker.Key, v)
					}
				}
				do("SELECT", strconv.Itoa(row.own))
				do("SET", "k", "v")
			}
			args, _ := toymaster.ParseFrame(row.frames)
			var command []string
			for _, a := range args {
				command = append(command, string(a))
			}
			compare := func(what string, args ...string) {
				want, got := writtenNow.ReplaceAllString(string(live.do(args...)), "$1=T"), writtenNow.ReplaceAllString(string(toy.Do(args...)), "$1=T")
				if got != want {
					t.Errorf("%s: the toy master says\n%q, and Redis\n%q", what, got, want)
				}
			}
			compare("the script", command...)
			compare("where it was called", "GET", marker.Key)
			for db := range 16 {
				live.do("SELECT", strconv.Itoa(db))
				toy.Do("SELECT", strconv.Itoa(db))
				compare(fmt.Sprintf("database %d", db), "GET", marker.Key)
			}
		})
	}
}

// A server whose user may not SELECT, in scripts or at all, has one database.
func TestMarkersWhereSelectIsForbidden(t *testing.T) {
	live := startLiveMaster(t)
	live.must("ACL", "SETUSER", "p", "on", ">p", "~*", "+@all", "-select")
	live.must("AUTH", "p", "p")
	m := marker.Marker{Set: "s", Member: 1, Members: 1, Epoch: 1, Joined: []string{"1"}, Run: "r", Since: marker.SinceNow}
	ask := master.AppendMark(nil, roster.Write{Kind: roster.WriteAll, Marker: m}, time.Duration(time.Now().Add(time.Hour).UnixNano()))
	if done, err := ballot.ParseDone(live.conn.ask(ask, 1)); !done || err != nil {
		t.Fatalf("the marker is not written: %v %v", done, err)
	}
	text, _ := resp.ParseBulk(live.must("GET", marker.Key))
	if got, ok := marker.Parse(string(text)); !ok || got.Since == 0 {
		t.Errorf("%q", text)
	}
	edit := master.AppendMark(nil, roster.Write{Seen: string(text), Kind: roster.EditAll, Marker: m}, 0)
	raise := master.AppendRaise(nil, 0, 9*time.Second)
	for _, frames := range [][]byte{edit, raise} {
		if done, err := ballot.ParseDone(live.conn.ask(frames, 1)); !done || err != nil {
			t.Errorf("%.60q: %v %v", frames, done, err)
		}
	}
}
