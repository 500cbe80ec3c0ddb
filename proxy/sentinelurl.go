package proxy

import (
	"errors"
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

// sentinelName is what Sentinel allows a master's name to be.
var sentinelName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// parseSentinelEndpoint reads the URL of a master that Sentinels manage, given
// in two parts. User and password are the server's, as in every other URL; the
// Sentinels' own are options. Its errors never quote the URL.
func parseSentinelEndpoint(scheme, rest string) (endpoint, error) {
	end := strings.IndexAny(rest+"/", "/?#")
	authority, rest := rest[:end], rest[end:]
	at := strings.LastIndexByte(authority, '@') + 1
	// A URL proper has one host.
	u, err := url.Parse(scheme + "://" + authority[:at] + "host" + rest)
	if err != nil || strings.Contains(authority[:at], ",") {
		return endpoint{}, errors.New("not a URL; allowed: " + urlForms +
			" (user and password stand once, and in them write / as %2F, # as %23, ? as %3F, % as %25, a comma as %2C)")
	}
	if u.Fragment != "" {
		return endpoint{}, errors.New("the URL has a # in it; write # in a password as %23")
	}
	name := strings.Trim(u.Path, "/")
	if !sentinelName.MatchString(name) {
		return endpoint{}, errors.New("behind the Sentinels' addresses the master's name must stand, as the Sentinels have it: " + sentinelForms)
	}
	addresses, err := sentinelAddresses(authority[at:])
	if err != nil {
		return endpoint{}, err
	}
	query, err := readOptions(u, sentinelOptions, urlTLSOptions, sentinelTLSScheme)
	if err != nil {
		return endpoint{}, err
	}
	if query.Get("sentinel_user") != "" && query.Get("sentinel_password") == "" {
		return endpoint{}, errors.New("the URL's option sentinel_user needs sentinel_password")
	}
	e := endpoint{name: name + "@" + addresses[0], network: scheme, address: addresses[0], username: u.User.Username()}
	e.db, _ = strconv.Atoi(query.Get("db"))
	password, _ := u.User.Password()
	e.password = secret(password)
	if err := e.readSecret(query); err != nil {
		return endpoint{}, err
	}
	if scheme == sentinelTLSScheme {
		// Without server_name each server shows the name it is dialled by.
		if e.tls, err = readServerTLS(query, ""); err != nil {
			return endpoint{}, err
		}
	}
	e.sentinels = newSentinelGroup(name, addresses, endpoint{
		username: query.Get("sentinel_user"), password: secret(query.Get("sentinel_password")), tls: e.tls,
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
		if slices.ContainsFunc(addresses, func(a string) bool { return canonicalAddress(a) == canonicalAddress(address) }) {
			return nil, errors.New("the URL names one Sentinel twice")
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
