package resp

import "testing"

func TestCannotServe(t *testing.T) {
	for reply, want := range map[string]struct{ failed, inside bool }{
		"-LOADING Redis is loading the dataset in memory\r\n":              {true, false},
		"-BUSY Redis is busy running a script.\r\n":                        {true, false},
		"-NOAUTH Authentication required.\r\n":                             {true, false},
		"-EXECABORT Transaction discarded because of previous errors.\r\n": {true, false},
		"-READONLY You can't write against a read only replica.\r\n":       {true, true},
		"-MASTERDOWN Link with MASTER is down\r\n":                         {true, true},
		"-MISCONF Redis is configured to save RDB snapshots\r\n":           {true, true},
		"-OOM command not allowed when used memory > 'maxmemory'.\r\n":     {true, true},
		"-NOPERM this user has no permissions\r\n":                         {true, true},
		"!7\r\nOOM now\r\n": {true, true},
		"-ERR Error running script (call to f_8f): @user_script:1: @user_script: 1: -READONLY You can't write\r\n": {true, true},
		"-ERR Error running script (call to f_8f): @user_script:1: @user_script: 1: -ERR value\r\n":                {},
		"-ERR Error running script (call to f_8f): @user_script:1: no\r\n":                                         {},
		"-ERR OOM\r\n":    {},
		"-OOMPH\r\n":      {},
		"-ERROR\r\n":      {},
		"-NOT LOCKED\r\n": {},
		"-NOSCRIPT No matching script. Please use EVAL.\r\n":                     {},
		"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n": {},
		"+OOM\r\n":           {},
		"$3\r\nOOM\r\n":      {},
		"*1\r\n-OOM now\r\n": {},
		"$-1\r\n":            {},
		"":                   {},
	} {
		if CannotServe([]byte(reply)) != want.failed || CannotServeInside([]byte(reply)) != want.inside {
			t.Errorf("%q: %v, inside EXEC %v", reply, CannotServe([]byte(reply)), CannotServeInside([]byte(reply)))
		}
	}
}

func TestInnerCode(t *testing.T) {
	for reply, want := range map[string]string{
		"-OOM command not allowed\r\n": "OOM",
		"!7\r\nOOM now\r\n":            "OOM",
		"-ERR Error running script (call to f_8f): @user_script:1: @user_script: 1: -READONLY You can't write\r\n": "READONLY",
		"-ERR Error running script (call to f_8f): @user_script:1: no\r\n":                                         "ERR",
	} {
		if got := string(InnerCode([]byte(reply))); got != want {
			t.Errorf("%q: %s, want %s", reply, got, want)
		}
	}
}
