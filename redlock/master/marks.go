package master

import (
	_ "embed"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
)

var (
	//go:embed databases.lua
	databasesText string
	//go:embed mark.lua
	markText string
	//go:embed edit.lua
	editText string
	//go:embed raise.lua
	raiseText string

	markerKey = [][]byte{[]byte(marker.Key)}
)

var spreads = [...]string{roster.WriteHere: "here", roster.WriteLacking: "lacking", roster.WriteAll: "all"}

// AppendMark appends the command that writes a marker. The master writes nothing if its
// clock is past latest.
func AppendMark(dst []byte, m roster.Write, latest time.Duration) []byte {
	script := databasesText + markText
	args, turns := [][]byte{resp.Decimal(int64(m.DB)), []byte(m.Seen)}, "keep"
	if m.Turn {
		turns = "turn"
	}
	switch m.Kind {
	case roster.EditAll:
		script = databasesText + editText
		args = append(args, []byte(m.Marker.Set), []byte(m.Marker.Who()), []byte(turns))
	default:
		args = append(args, resp.Decimal(latest.Milliseconds()), []byte(m.Marker.String()), []byte(spreads[m.Kind]))
	}
	// rule: a marker that SWAPDB took elsewhere does not count when it comes back
	args = append(args, resp.Decimal(marker.Databases))
	if m.Kind == roster.EditAll {
		args = append(args, resp.Decimal(m.Marker.Token), []byte(m.Marker.Version()))
	}
	return resp.AppendEval(dst, script, markerKey, args...)
}

// AppendRaise appends the command that records a longer TTL in a master's markers. The
// TTL is one that Covered returned. The answer is an integer above zero if it was
// recorded.
func AppendRaise(dst []byte, db int, longest time.Duration) []byte {
	return resp.AppendEval(dst, raiseText, markerKey, resp.Decimal(int64(db)), resp.Decimal(longest.Milliseconds()))
}
