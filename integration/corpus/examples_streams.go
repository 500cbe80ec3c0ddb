package corpus

// The examples give every entry id and time themselves. If each master made ids from its
// own clock, no two votes would agree.
var streamExamples = exampleLines{
	"xack":                  {"K g 1-1", "XGROUP CREATE K g 0 MKSTREAM; XADD K 1-1 f v; XREADGROUP GROUP g c STREAMS K >; XACK K g 1-1 9-9; XACK K g 1-1; XACK K g x"},
	"xadd":                  {"K 9-1 f v", "K 1-1 f v", "K 0-0 f v", "K NOMKSTREAM 9-1 f v", "K MAXLEN 1 9-1 f v", "K MINID = 2 9-1 f v", "K 9-1 f", "K bad f v"},
	"xautoclaim":            {"K g c 0 0", "XGROUP CREATE K g 0 MKSTREAM; XADD K 1-1 f v; XREADGROUP GROUP g c STREAMS K >; XAUTOCLAIM K g d 0 0 COUNT 5 JUSTID; XAUTOCLAIM K g d x 0; XAUTOCLAIM K g d 99999999 0"},
	"xclaim":                {"K g c 0 1-1", "XGROUP CREATE K g 0 MKSTREAM; XADD K 1-1 f v; XREADGROUP GROUP g c STREAMS K >; XCLAIM K g d 0 1-1; XCLAIM K g d 0 1-1 JUSTID; XCLAIM K g d 0 9-9; XCLAIM K g d 0 1-1 TIME x"},
	"xdel":                  {"K 1-1", "K 1-1 9-9", "K x"},
	"xgroup|create":         {"K g 0", "K g $ MKSTREAM", "K g x", "XGROUP CREATE K g 0 MKSTREAM; XGROUP CREATE K g 0; XLEN K; TYPE K"},
	"xgroup|createconsumer": {"K g c", "XGROUP CREATE K g 0 MKSTREAM; XGROUP CREATECONSUMER K g c; XGROUP CREATECONSUMER K g c; XGROUP CREATECONSUMER K nosuch c"},
	"xgroup|delconsumer":    {"K g c", "XGROUP CREATE K g 0 MKSTREAM; XGROUP CREATECONSUMER K g c; XGROUP DELCONSUMER K g c; XGROUP DELCONSUMER K g c"},
	"xgroup|destroy":        {"K g", "XGROUP CREATE K g 0 MKSTREAM; XGROUP DESTROY K g; XGROUP DESTROY K g"},
	"xgroup|setid":          {"K g 0", "XGROUP CREATE K g 0 MKSTREAM; XGROUP SETID K g 5-0; XGROUP SETID K g 5-0 ENTRIESREAD 1; XGROUP SETID K nosuch 0"},
	"xinfo|consumers":       {"K g", "XGROUP CREATE K g 0 MKSTREAM; XGROUP CREATECONSUMER K g c; XINFO CONSUMERS K g; XINFO CONSUMERS K nosuch"},
	"xinfo|groups":          {"K", "XGROUP CREATE K g 0 MKSTREAM; XADD K 1-1 f v; XINFO GROUPS K"},
	"xinfo|stream":          {"K", "K FULL", "K FULL COUNT 1", "K BOGUS", "XGROUP CREATE K g 0 MKSTREAM; XADD K 1-1 f v; XREADGROUP GROUP g c STREAMS K >; XINFO STREAM K; XINFO STREAM K FULL"},
	"xlen":                  {"K"},
	"xpending":              {"K g", "XGROUP CREATE K g 0 MKSTREAM; XADD K 1-1 f v; XREADGROUP GROUP g c STREAMS K >; XPENDING K g; XPENDING K g - + 5; XPENDING K g IDLE 0 - + 5 c; XPENDING K g - +"},
	"xrange":                {"K - +", "K (1-1 + COUNT 1", "K x y", "K 2 1"},
	"xread":                 {"STREAMS K 0", "COUNT 1 STREAMS K K2 0 0", "STREAMS K $", "STREAMS K", "STREAMS K K2 0", "COUNT x STREAMS K 0"},
	"xreadgroup":            {"GROUP g c STREAMS K >", "XGROUP CREATE K g 0 MKSTREAM; XADD K 1-1 f v; XREADGROUP GROUP g c COUNT 1 STREAMS K >; XREADGROUP GROUP g c STREAMS K 0; XREADGROUP GROUP g c STREAMS K >; XREADGROUP GROUP g c NOACK STREAMS K >; XREADGROUP GROUP nosuch c STREAMS K >"},
	"xrevrange":             {"K + -", "K + - COUNT 1", "K x y"},
	"xsetid":                {"K 9-9", "K 1-0", "K 9-9 ENTRIESADDED 5 MAXDELETEDID 1-0", "K x"},
	"xtrim":                 {"K MAXLEN 1", "K MINID 2", "K MAXLEN = 0", "K MAXLEN x", "K MAXLEN 1 LIMIT 5"},
}

var scriptExamples = exampleLines{
	"eval":       {"\"return redis.call('type', KEYS[1])\" 1 K", "\"return redis.call('get', KEYS[1])\" 1 K", "\"return {KEYS, ARGV}\" 2 K K2 a", "\"return 1\" 5 K"},
	"eval_ro":    {"\"return redis.call('exists', KEYS[1])\" 1 K", "\"return redis.call('del', KEYS[1])\" 1 K"},
	"evalsha":    {"0000000000000000000000000000000000000000 1 K", "SCRIPT LOAD \"return redis.call('incr', KEYS[1])\"; EVALSHA 2bab3b661081db58bd2341920e0ba7cf5dc77b25 1 K; GET K"},
	"evalsha_ro": {"0000000000000000000000000000000000000000 1 K"},
	"fcall":      {"nosuch 1 K", "nosuch 0"},
	"fcall_ro":   {"nosuch 1 K"},
}
