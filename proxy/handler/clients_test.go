package handler

import (
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/wire"
)

// Nobody gets a right while the upstream cannot say who has it.
func TestLacksRight(t *testing.T) {
	for name, row := range map[string]struct {
		unreachable wire.Error
		reply       string
		want        wire.Error
	}{
		"it has the right":                 {"", ":0\r\n", ""},
		"an old server knows no LIST ID":   {"", "-ERR syntax error\r\n", ""},
		"it lacks the right":               {"", "-NOPERM no\r\n", "-NOPERM no\r\n"},
		"the upstream loads":               {"", "-LOADING wait\r\n", "-LOADING wait\r\n"},
		"the upstream cannot be reached":   {wire.ErrUpstreamDown, "", wire.ErrUpstreamDown},
		"the upstream is full":             {"-ERR max number of clients reached\r\n", "", "-ERR max number of clients reached\r\n"},
		"the connection to it breaks then": {"", "", wire.ErrUpstreamDown},
	} {
		if got := refusalIn(row.unreachable, []byte(row.reply)); got != row.want {
			t.Errorf("%s: %q, not %q", name, got, row.want)
		}
	}
}

// REDIRECT is found where Redis looks for it, and not in a prefix.
func TestRedirectIn(t *testing.T) {
	for line, want := range map[string]int{
		"CLIENT TRACKING ON":                                   0,
		"CLIENT TRACKING ON REDIRECT":                          0,
		"CLIENT TRACKING ON REDIRECT 7":                        4,
		"CLIENT TRACKING ON BCAST redirect 7":                  5,
		"CLIENT TRACKING ON BCAST PREFIX REDIRECT":             0,
		"CLIENT TRACKING ON BCAST PREFIX REDIRECT REDIRECT 7":  7,
		"CLIENT TRACKING ON BCAST PREFIX a PREFIX b NOLOOP":    0,
		"CLIENT TRACKING REDIRECT 7":                           0,
		"CLIENT TRACKING ON OPTIN REDIRECT 7 PREFIX REDIRECT ": 5,
	} {
		if got := redirectIn(proxytest.Words(line)); got != want {
			t.Errorf("%q: %d, not %d", line, got, want)
		}
	}
}

// TRACKINGINFO shows CLIENT CACHING although the upstream does not know of it yet.
func TestShowCaching(t *testing.T) {
	const end = "$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0\r\n"
	for before, after := range map[string]string{
		"*6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$5\r\noptin\r\n" + end:                       "*6\r\n$5\r\nflags\r\n*3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n" + end,
		"%3\r\n$5\r\nflags\r\n~3\r\n$2\r\non\r\n$6\r\noptout\r\n$6\r\nnoloop\r\n" + end:      "%3\r\n$5\r\nflags\r\n~4\r\n$2\r\non\r\n$6\r\noptout\r\n$10\r\ncaching-no\r\n$6\r\nnoloop\r\n" + end,
		"%3\r\n$5\r\nflags\r\n~3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n" + end: "",
		"%3\r\n$5\r\nflags\r\n~2\r\n$2\r\non\r\n$5\r\nbcast\r\n" + end:                       "",
		"-NOPERM no\r\n": "",
		"":               "",
	} {
		h := &Handler{}
		if got := string(h.showTracking([]byte(before))); got != before {
			t.Errorf("without CACHING: %q", got)
		}
		h.tracking.Caching = true
		if after == "" {
			after = before
		}
		if got := string(h.showTracking([]byte(before))); got != after {
			t.Errorf("%q: got %q, want %q", before, got, after)
		}
	}
}

// TRACKINGINFO shows the proxy's id of the client that gets the messages.
func TestShowRedirect(t *testing.T) {
	const before, after = "*6\r\n$5\r\nflags\r\n*1\r\n$2\r\non\r\n$8\r\nredirect\r\n:", "\r\n$8\r\nprefixes\r\n*0\r\n"
	for name, row := range map[string]struct {
		redirect    int64
		reply, want string
	}{
		"the upstream's id is replaced": {7, before + "123" + after, before + "7" + after},
		"it redirects to nobody":        {0, before + "0" + after, before + "0" + after},
		"an error":                      {7, "-NOPERM no\r\n", "-NOPERM no\r\n"},
		"a reply that is cut":           {7, before, before},
		"no reply":                      {7, "", ""},
	} {
		h := &Handler{tracking: pubsub.Tracking{Redirect: row.redirect}}
		if got := string(h.showTracking([]byte(row.reply))); got != row.want {
			t.Errorf("%s: %q, not %q", name, got, row.want)
		}
	}
}
