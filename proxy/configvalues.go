package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads Go's notation. A bare number other than 0 is refused:
// Redis's own settings count in seconds, clients count in milliseconds.
func parseDuration(text string, from, to time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration; write a number with a unit, such as 50ms, 30s, 10m or 1h", quoteValue(text))
	}
	if d < from || d > to {
		return 0, fmt.Errorf("%s is out of range; allowed: %s to %s", quoteValue(text), shortDuration(from), shortDuration(to))
	}
	return d, nil
}

// shortDuration is Duration.String without the zero units: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

var sizeUnits = map[string]uint64{
	"": 1, "b": 1,
	"k": 1000, "kb": 1 << 10,
	"m": 1000 * 1000, "mb": 1 << 20,
	"g": 1000 * 1000 * 1000, "gb": 1 << 30,
}

// parseSize reads a size in bytes with the units of redis.conf.
func parseSize(text string, from, to int64) (int64, error) {
	digits := strings.TrimRight(text, "bkmgBKMG")
	unit, known := sizeUnits[strings.ToLower(text[len(digits):])]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !known {
		return 0, fmt.Errorf("%s is not a size; write a number of bytes or use Redis's units, such as 64kb, 512mb or 1gb (k, m and g count in thousands)", quoteValue(text))
	}
	if n > math.MaxInt64/unit || int64(n*unit) < from || int64(n*unit) > to {
		return 0, fmt.Errorf("%s is out of range; allowed: %s to %s", quoteValue(text), shortSize(from), shortSize(to))
	}
	return int64(n * unit), nil
}

func shortSize(n int64) string {
	switch {
	case n%(1<<30) == 0:
		return fmt.Sprintf("%dgb", n>>30)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dmb", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%dkb", n>>10)
	}
	return strconv.FormatInt(n, 10)
}

func parseInteger(text string, from, to int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < from || n > to {
		return 0, fmt.Errorf("%s is not a whole number from %d to %d", quoteValue(text), from, to)
	}
	return n, nil
}

func parseFraction(text string, from, to float64) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= from && f <= to) { // NaN is in no range
		return 0, fmt.Errorf("%s is not a number from %g to %g", quoteValue(text), from, to)
	}
	return f, nil
}

// unixPrefix marks a listen address that is a socket's path.
const unixPrefix = "unix:"

// parseListen checks an address the proxy itself listens on.
func parseListen(text string, unixAllowed bool) (string, error) {
	allowed := "allowed: host:port, such as 127.0.0.1:6380 or 0.0.0.0:6380"
	if unixAllowed {
		allowed += ", or unix:/path"
		if path, ok := strings.CutPrefix(text, unixPrefix); ok {
			if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
				return "", errors.New("the socket's path must begin with one /, as in unix:/run/redlock-proxy.sock")
			}
			return text, nil
		}
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%s is not an address; %s", quoteValue(text), allowed)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || strings.ContainsAny(host, "/ ") {
		return "", fmt.Errorf("%s is not an address with a port from 0 to 65535; %s", quoteValue(text), allowed)
	}
	return text, nil
}

// parsePermissions reads what chmod takes as a number.
func parsePermissions(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o777 || mode&0o600 != 0o600 {
		return 0, fmt.Errorf("%s is not a number as chmod takes it, from 0600 to 0777, with which the proxy itself may read and write", quoteValue(text))
	}
	return fs.FileMode(mode), nil
}

// parseChoice checks a word against the few that are allowed.
func parseChoice(text string, allowed ...string) (string, error) {
	if slices.Contains(allowed, text) {
		return text, nil
	}
	return "", fmt.Errorf("%s is not allowed here; allowed: %s", quoteValue(text), strings.Join(allowed, ", "))
}
