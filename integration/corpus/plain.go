package corpus

// plainScenarios are locks that need no script.
func plainScenarios() []Scenario {
	return []Scenario{
		spelled("SET, all spellings",
			"SET lock:{n} a NX PX 100000", "SET lock:{n} b PX 100000 NX", "set lock:{n} c nx px 100000",
			"DEL lock:{n}", "sEt lock:{n} d eX 100 nX", "GET lock:{n}", "del lock:{n}",
			"SET lock:{n} e NX EX 100", "TTL lock:{n}", "UNLINK lock:{n}",
			"SET lock:{n} f PXAT 4102444800000 NX", "PEXPIRETIME lock:{n}", "UNLINK lock:{n}",
			"SET lock:{n} g NX EXAT 4102444800", "EXPIRETIME lock:{n}", "EXISTS lock:{n} lock:{n}"),
		spelled("SET, wrong options",
			"SET lock:{n} a NX XX", "SET lock:{n} a NX PX", "SET lock:{n} a NX PX 0", "SET lock:{n} a NX PX -5",
			"SET lock:{n} a NX EX 9223372036854775807", "SET lock:{n} a NX PX 9223372036854775807",
			"SET lock:{n} a NX PX 12.5", "SET lock:{n} a NX PX ten", "SET lock:{n} a EX 10 PX 1000",
			"SET lock:{n} a KEEPTTL EX 10", "SET lock:{n} a NX PX 1000 IFEQ b", "SET lock:{n} a BOGUS",
			"SET lock:{n} a IFEQ b", "SET lock:{n}", "SET lock:{n} a EX", "GET lock:{n}"),
		spelled("SET GET",
			"SET lock:{n} a NX GET PX 100000", "SET lock:{n} b NX GET PX 100000", "SET lock:{n} c GET",
			"GET lock:{n}", "TTL lock:{n}", "SET lock:{n} d XX GET KEEPTTL", "SET lock:{n} e GET EX 100",
			"DEL lock:{n}", "SET lock:{n} f XX GET", "GET lock:{n}"),
		spelled("huge time of malkusch",
			"SET lock:{n} a px 31557600000000 nx", "SET lock:{n} b px 31557600000000 nx", "GET lock:{n}", "DEL lock:{n}"),
		spelled("no time at all",
			"SET lock:{n} a NX", "SET lock:{n} b NX", "TTL lock:{n}", "GET lock:{n}", "DEL lock:{n}", "DEL lock:{n}",
			"SETNX lock:{n} c", "SETNX lock:{n} d", "PTTL lock:{n}", "GETDEL lock:{n}", "GETDEL lock:{n}"),
		spelled("SETNX and EXPIRE",
			"SETNX lock:{n} a", "EXPIRE lock:{n} 100", "TTL lock:{n}", "SETNX lock:{n} b", "PEXPIRE lock:{n} 200000",
			"PTTL lock:{n}", "EXPIRE lock:{n} 50 GT", "EXPIRE lock:{n} 50 LT", "EXPIRE lock:{n} 60 NX",
			"PEXPIREAT lock:{n} 4102444800000 XX", "EXPIRETIME lock:{n}", "EXPIRE lock:{n} 0", "EXISTS lock:{n}",
			"EXPIRE lock:{n} 100"),
		spelled("timestamps and GETSET",
			"SETNX lock:{n} 1700000000.5", "SETNX lock:{n} 1700000001.5", "GET lock:{n}",
			"GETSET lock:{n} 1700000009.5", "GET lock:{n}", "GETSET lock:{n} 1700000010.5", "DEL lock:{n}",
			"GETSET lock:{n} 1", "GET lock:{n}"),
		spelled("ShedLock",
			"SET lock:{n} ADDED:1@host:uuid NX PX 100000", "SET lock:{n} ADDED:2@host:uuid XX PX 150000",
			"GET lock:{n}", "PTTL lock:{n}", "DEL lock:{n}", "SET lock:{n} ADDED:3@host:uuid XX PX 1000", "GET lock:{n}"),
		spelled("phpredis session",
			"SET PHPREDIS_SESSION:{n}_LOCK host|17 NX PX 100000", "SET PHPREDIS_SESSION:{n}_LOCK host|18 NX",
			"GET PHPREDIS_SESSION:{n}_LOCK", "SET PHPREDIS_SESSION:{n} data EX 100", "DEL PHPREDIS_SESSION:{n}_LOCK",
			"GET PHPREDIS_SESSION:{n}"),
		spelled("new commands a 7.0 server does not know",
			"SET lock:{n} a NX PX 100000", "DELEX lock:{n} IFEQ a", "DELIFEQ lock:{n} a", "SET lock:{n} b IFEQ a PX 100000",
			"DIGEST lock:{n}", "MSETEX 1 lock:{n} a", "GET lock:{n}"),
		spelled("other types under a lock name",
			"HSET lock:{n} f v", "SET lock:{n} a NX PX 1000", "SETNX lock:{n} a", "GET lock:{n}", "GETSET lock:{n} a",
			"SET lock:{n} a NX GET", "SET lock:{n} a GET", "GETDEL lock:{n}", "TTL lock:{n}", "EXPIRE lock:{n} 100",
			"TYPE lock:{n}", "SET lock:{n} a PX 100000", "TYPE lock:{n}", "INCR lock:{n}"),
		spelled("several at once",
			"SET lock:{n}:a 1 NX PX 100000", "SET lock:{n}:b 2 NX PX 100000", "EXISTS lock:{n}:a lock:{n}:b lock:{n}:c",
			"MGET lock:{n}:a lock:{n}:c lock:{n}:b", "MSETNX lock:{n}:a 9 lock:{n}:c 9", "MSETNX lock:{n}:d 9 lock:{n}:c 9",
			"TOUCH lock:{n}:a lock:{n}:zz", "DEL lock:{n}:a lock:{n}:b lock:{n}:zz", "UNLINK lock:{n}:c lock:{n}:d",
			"MGET lock:{n}:a lock:{n}:b lock:{n}:c lock:{n}:d"),
		spelled("both servers at once",
			"SET lock:{n} 1 NX PX 100000", "SET plain:{n} 2", "MGET lock:{n} plain:{n} lock:{n}:x plain:{n}:x",
			"EXISTS lock:{n} plain:{n} lock:{n} plain:{n}:x", "TOUCH plain:{n} lock:{n}", "DEL plain:{n} lock:{n} plain:{n}:x",
			"UNLINK plain:{n} lock:{n}", "MGET plain:{n} lock:{n}"),
		spelled("another database",
			"SELECT 3", "SET lock:{n} three NX PX 100000", "GET lock:{n}", "SELECT 0", "GET lock:{n}", "SELECT 16",
			"SELECT x", "SELECT 3", "DEL lock:{n}", "GET lock:{n}", "SELECT 0"),
		spelled("transaction on a lock",
			"SET lock:{n} mine NX PX 100000", "WATCH lock:{n}", "GET lock:{n}", "MULTI", "DEL lock:{n}", "EXEC",
			"EXISTS lock:{n}", "EXEC", "DISCARD", "MULTI", "SET lock:{n} a NX PX 100000", "GET lock:{n}", "INCR lock:{n}",
			"EXEC", "MULTI", "SET lock:{n}", "GET lock:{n}", "EXEC", "WATCH lock:{n}", "UNWATCH", "MULTI", "DISCARD",
			"GET lock:{n}"),
		spelled("watched lock changed meanwhile",
			"SET lock:{n} mine NX PX 100000", "WATCH lock:{n}", "SET lock:{n} other", "MULTI", "DEL lock:{n}", "EXEC",
			"GET lock:{n}"),
		{"tokens are bytes", []step{
			cmd("SET", "lock:{n}", "\x00\r\n\xff$5\r\n", "NX", "PX", "100000"),
			line("GET lock:{n}"),
			eval(ReleaseScripts["one line"], []string{"lock:{n}"}, "\x00\r\n"),
			eval(ReleaseScripts["one line"], []string{"lock:{n}"}, "\x00\r\n\xff$5\r\n"),
			cmd("SET", "lock:{n}", "", "NX", "PX", "100000"),
			line("GET lock:{n}"),
			eval(ReleaseScripts["one line"], []string{"lock:{n}"}, ""),
		}},
	}
}

// spelled makes a scenario from lines. Replies of TTL commands are compared with
// tolerance, all others byte for byte.
func spelled(name string, lines ...string) Scenario {
	s := Scenario{Name: name}
	for _, text := range lines {
		each := line(text)
		switch each.args[0] {
		case "PTTL", "PEXPIRETIME": // the proxy sends absolute times to the masters as relative ones
			each = each.by(remaining)
		case "TTL", "EXPIRETIME":
			each = each.by(remainingSeconds)
		}
		s.steps = append(s.steps, each)
	}
	return s
}
