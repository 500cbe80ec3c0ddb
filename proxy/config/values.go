package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// set parses a single value into the setting's field. Numbers and words such as true are
// texts too, so a password of digits needs no quotes.
func (s setting) set(text string) (err error) {
	switch place := s.place.(type) {
	case *string:
		*place, err = text, checkText(text, s.allowed)
	case *bool:
		no, yes, _ := strings.Cut(s.allowed, " ")
		*place, err = text == yes, checkWord(text, no+" "+yes)
	case *time.Duration:
		err = parseRange(place, text, s.allowed, parseDuration)
	case *int:
		err = parseRange(place, text, s.allowed, parseInteger)
	case *int64:
		err = parseRange(place, text, s.allowed, parseSize)
	case *float64:
		err = parseRange(place, text, s.allowed, parseNumber)
	case *fs.FileMode:
		*place, err = parsePermissions(text)
	case *[]string: // an initial value: the reader fills lists
		*place = []string{}
	case *Masters:
		place.Embedded = true
	case *route.Rules:
		*place = route.Rules{{Match: text, DB: route.AnyDB}}
	case *Rights:
		*place, err = cmp.Or(rightsByWord[text], *place), checkWord(text, s.allowed)
	case encoding.TextUnmarshaler:
		err = place.UnmarshalText([]byte(text))
	default:
		panic(fmt.Sprintf("the configuration has no %T", place))
	}
	return err
}

// text is the setting's value in the notation of the file, and "-" if there is none. A
// secret is only set or none.
func (s setting) text() string {
	switch place := s.place.(type) {
	case *string:
		return cmp.Or(*place, "-")
	case *bool:
		no, yes, _ := strings.Cut(s.allowed, " ")
		if *place {
			return yes
		}
		return cmp.Or(no, "-")
	case *time.Duration:
		return ShortDuration(*place)
	case *int64:
		return shortSize(*place)
	case *fs.FileMode:
		return fmt.Sprintf("%#o", *place)
	case *[]string:
		return describeGlobs(*place)
	case *route.Rules:
		return DescribeRules(*place)
	case *[]User:
		return cmp.Or(describeUsers(*place), "-")
	}
	return fmt.Sprint(reflect.ValueOf(s.place).Elem())
}

// parseRange parses a value and checks it against a range: the least and the most, in the
// notation of the file. A range without a least one begins with a space.
func parseRange[T cmp.Ordered](place *T, text, bounds string, parse func(string) (T, error)) error {
	least, most, _ := strings.Cut(bounds, " ")
	allowed := cmp.Or(least, "up") + " to " + most
	from, errFrom := parse(cmp.Or(least, most))
	to, errTo := parse(most)
	if err := errors.Join(errFrom, errTo); err != nil {
		panic(err)
	}
	value, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s %w; allowed: %s", quoteValue(text), err, allowed)
	}
	if !((value >= from || least == "") && value <= to) { // written so that NaN is out of range
		return fmt.Errorf("%s is out of range; allowed: %s", quoteValue(text), allowed)
	}
	*place = value
	return nil
}

// parseDuration parses Go's notation. It refuses a bare number other than 0, because
// Redis's own settings count in seconds and clients count in milliseconds.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("is not a duration; write a number with a unit, such as 50ms, 30s, 10m or 1h")
	}
	return d, nil
}

// ShortDuration is Duration.String without the zero units: 10m, not 10m0s.
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Timestamp is a time as text, for people and programs.
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Plural returns a number with its noun: 1 master, 3 masters.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

var sizeUnits = map[string]uint64{
	"": 1, "b": 1,
	"k": 1000, "kb": 1 << 10,
	"m": 1000 * 1000, "mb": 1 << 20,
	"g": 1000 * 1000 * 1000, "gb": 1 << 30,
}

// parseSize parses a size in bytes with the units of redis.conf. A size that does not fit
// an int64 becomes the largest int64, which is out of every range.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "bkmgBKMG")
	unit, known := sizeUnits[strings.ToLower(text[len(digits):])]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !known {
		return 0, errors.New("is not a size; write a number of bytes or use Redis's units, such as 64kb, 512mb or 1gb (k, m and g count in thousands)")
	}
	if n > math.MaxInt64/unit {
		return math.MaxInt64, nil
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

func parseInteger(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("is not a whole number")
	}
	return n, nil
}

func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errors.New("is not a number")
	}
	return x, nil
}

// UnixPrefix marks a listen address that is a socket's path.
const UnixPrefix = "unix:"

// CheckListen checks an address on which the proxy listens. An empty one is valid: the
// proxy does not listen.
func CheckListen(text string, unixAllowed bool) error {
	if text == "" {
		return nil
	}
	allowed := "allowed: host:port, such as 127.0.0.1:6380 or 0.0.0.0:6380"
	if unixAllowed {
		allowed += ", or unix:/path"
		if path, ok := strings.CutPrefix(text, UnixPrefix); ok {
			if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
				return errors.New("the socket's path must begin with one /, as in unix:/run/redlock-proxy.sock")
			}
			return nil
		}
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%s is not an address; %s", quoteValue(text), allowed)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || strings.ContainsAny(host, "/ ") {
		return fmt.Errorf("%s is not an address with a port from 0 to 65535; %s", quoteValue(text), allowed)
	}
	return nil
}

// parsePermissions parses an octal mode, as chmod does.
func parsePermissions(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o777 || mode&0o600 != 0o600 {
		return 0, fmt.Errorf("%s is not an octal mode from 0600 to 0777; the proxy itself must be able to read and write", quoteValue(text))
	}
	return fs.FileMode(mode), nil
}

// checkText checks a text against a form, or against the allowed words if there are any.
func checkText(text, allowed string) error {
	switch allowed {
	case "":
		return nil
	case anAddress, anAddressOrSocket:
		return CheckListen(text, allowed == anAddressOrSocket)
	case aPath:
		return endpoint.CheckPath(text)
	}
	return checkWord(text, allowed)
}

// checkWord checks that a word is one of the allowed words.
func checkWord(text, allowed string) error {
	words := strings.Fields(allowed)
	if slices.Contains(words, text) {
		return nil
	}
	return fmt.Errorf("%s is not allowed here; allowed: %s", quoteValue(text), strings.Join(words, ", "))
}
