package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	sentinelScheme    = "sentinel"
	sentinelTLSScheme = "sentinels" // to the servers and to the Sentinels
	sentinelForms     = "sentinel://[user:password@]host[:port],host[:port]/NAME, sentinels:// for TLS"
	sentinelOptions   = urlOptions + ", sentinel_user, sentinel_password"
	sentinelPort      = "26379"
)

// sentinelName matches the names that Sentinel allows for a master.
var sentinelName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// parseSentinelEndpoint reads the URL of a master that Sentinels manage, in two parts.
// User and password are the server's, as in every other URL. Those of the Sentinels are
// options. Errors never quote the URL.
func parseSentinelEndpoint(scheme, rest string) (Endpoint, error) {
	end := strings.IndexAny(rest+"/", "/?#")
	authority, rest := rest[:end], rest[end:]
	at := strings.LastIndexByte(authority, '@') + 1
	// url.Parse allows one host only.
	u, err := url.Parse(scheme + "://" + authority[:at] + "host" + rest)
	if err != nil || strings.Contains(authority[:at], ",") {
		return Endpoint{}, fmt.Errorf("%w; allowed: %s (user and password come once, before the first host; %s, a comma as %%2C)", ErrForm, urlForms, urlEscapes)
	}
	if u.Fragment != "" {
		return Endpoint{}, errors.New("the URL has a # in it; write # in a password as %23")
	}
	name := strings.Trim(u.Path, "/")
	if !sentinelName.MatchString(name) {
		return Endpoint{}, errors.New("write the master's name behind the Sentinels' addresses, as the Sentinels have it: " + sentinelForms)
	}
	addresses, err := sentinelAddresses(authority[at:])
	if err != nil {
		return Endpoint{}, err
	}
	query, err := readOptions(u, sentinelOptions, urlTLSOptions, sentinelTLSScheme)
	if err != nil {
		return Endpoint{}, err
	}
	if query.Get("sentinel_user") != "" && query.Get("sentinel_password") == "" {
		return Endpoint{}, errors.New("the URL's option sentinel_user needs sentinel_password")
	}
	e := Endpoint{Name: name + "@" + addresses[0], Network: scheme, Address: addresses[0], Username: u.User.Username()}
	e.DB, _ = strconv.Atoi(query.Get("db"))
	password, _ := u.User.Password()
	e.Password = Secret(password)
	if err := e.readSecret(query); err != nil {
		return Endpoint{}, err
	}
	if scheme == sentinelTLSScheme {
		// Without server_name, each server's certificate must show its address.
		if e.TLS, err = readServerTLS(query, ""); err != nil {
			return Endpoint{}, err
		}
	}
	e.sentinels = newSentinelGroup(name, addresses, Endpoint{
		Username: query.Get("sentinel_user"), Password: Secret(query.Get("sentinel_password")), TLS: e.TLS,
	})
	return e, nil
}

func sentinelAddresses(list string) (addresses []string, err error) {
	for text := range strings.SplitSeq(list, ",") {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			host, port, err = net.SplitHostPort(text + ":" + sentinelPort)
		}
		if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 1 || n > 65535 || host == "" || strings.ContainsAny(host, "@ %") {
			return nil, errors.New("a Sentinel's address is not host or host:port with a port from 1 to 65535; allowed: " + sentinelForms)
		}
		address := net.JoinHostPort(host, port)
		if slices.ContainsFunc(addresses, func(a string) bool { return CanonicalAddress(a) == CanonicalAddress(address) }) {
			return nil, errors.New("the URL names one Sentinel twice")
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
