package endpoint

import (
	"cmp"
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
	urlForms = "redis://[user:password@]host[:port], rediss:// for TLS, unix:///path, " + sentinelForms

	urlEscapes = "in user and password write / as %2F, # as %23, ? as %3F, % as %25"

	urlOptions    = "db, password_file, password_env"
	urlTLSOptions = "ca_cert_file, cert_file, key_file, server_name, skip_verify"

	sentinelScheme    = "sentinel"
	sentinelTLSScheme = "sentinels" // to the servers and to the Sentinels
	sentinelForms     = "sentinel://[user:password@]host[:port],host[:port]/NAME, sentinels:// for TLS"
	sentinelOptions   = urlOptions + ", sentinel_user, sentinel_password"
	sentinelPort      = "26379"
)

// ErrForm means that a text is no URL of a server at all.
var ErrForm = errors.New("not a server URL")

// sentinelName matches the names that Sentinel allows for a master.
var sentinelName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// Parse reads a server URL and the files that its options name. Errors never quote the
// URL, because part of the password may have slipped into the wrong place.
//
// The URL of a master that Sentinels manage lists the Sentinels. User and password are the server's, as in
// every other URL. Those of the Sentinels are options.
func Parse(text string) (e Endpoint, err error) {
	scheme, rest, _ := strings.Cut(text, "://")
	managed, sentinels := scheme == sentinelScheme || scheme == sentinelTLSScheme, ""
	if managed { // url.Parse allows one host only
		end := strings.IndexAny(rest+"/", "/?#")
		at := strings.LastIndexByte(rest[:end], '@') + 1
		if sentinels = rest[at:end]; strings.Contains(rest[:at], ",") {
			return Endpoint{}, fmt.Errorf("%w; allowed: %s (user and password come once, before the first host; %s, a comma as %%2C)", ErrForm, urlForms, urlEscapes)
		}
		text = scheme + "://" + rest[:at] + "host" + rest[end:]
	}
	u, err := url.Parse(text)
	if err != nil {
		return Endpoint{}, fmt.Errorf("%w; allowed: %s (%s)", ErrForm, urlForms, urlEscapes)
	}
	path, options, encrypted := strings.Trim(u.Path, "/"), urlOptions, "rediss"
	var addresses []string
	switch u.Scheme {
	case "redis", "rediss":
		if u.Hostname() == "" {
			return Endpoint{}, errors.New("the URL names no host; allowed: " + urlForms)
		}
		if path != "" && !isDatabase(path) {
			return Endpoint{}, errors.New("only a database number is allowed after the host, as in redis://host:6379/3 (" + urlEscapes + ")")
		}
		e.Network, e.Address = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "6379"))
		e.Name = e.Address
	case "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/" {
			return Endpoint{}, errors.New("a unix URL is unix:///path/to/socket, or unix://user:password@/path/to/socket")
		}
		e.Network, e.Address, e.Name = "unix", u.Path, u.Path
	case sentinelScheme, sentinelTLSScheme:
		if options, encrypted = sentinelOptions, sentinelTLSScheme; u.Fragment == "" && !sentinelName.MatchString(path) {
			return Endpoint{}, errors.New("write the master's name behind the Sentinels' addresses, as the Sentinels have it: " + sentinelForms)
		}
		if addresses, err = sentinelAddresses(sentinels); err != nil {
			return Endpoint{}, err
		}
		e.Network, e.Address, e.Name = scheme, addresses[0], path+"@"+addresses[0]
	default:
		return Endpoint{}, fmt.Errorf("%w; allowed: %s", ErrForm, urlForms)
	}
	if u.Fragment != "" {
		return Endpoint{}, errors.New("the URL has a # in it; write # in a password as %23")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return Endpoint{}, errors.New("the URL's port is not from 1 to 65535")
		}
	}
	query, err := readOptions(u, options, urlTLSOptions, encrypted)
	if err != nil {
		return Endpoint{}, err
	}
	db := query.Get("db")
	if db == "" && e.Network == "tcp" {
		db = path
	}
	e.DB, _ = strconv.Atoi(db) // 0 if there is none
	e.Username = u.User.Username()
	password, _ := u.User.Password()
	e.Password = Secret(password)
	if err := e.readSecret(query); err != nil {
		return Endpoint{}, err
	}
	host := "" // without server_name, the certificate of each server of a group must show its address
	if !managed {
		host = u.Hostname()
	}
	if u.Scheme == encrypted {
		if e.TLS, err = readServerTLS(query, host); err != nil {
			return Endpoint{}, err
		}
	}
	if managed {
		user, password := query.Get("sentinel_user"), query.Get("sentinel_password")
		if user != "" && password == "" {
			return Endpoint{}, errors.New("the URL's option sentinel_user needs sentinel_password")
		}
		e.sentinels = newSentinelGroup(path, addresses, Endpoint{Username: user, Password: Secret(password), TLS: e.TLS})
	}
	return e, nil
}

// UnmarshalText calls Parse.
func (e *Endpoint) UnmarshalText(text []byte) (err error) {
	*e, err = Parse(string(text))
	return err
}

// readOptions checks the options after the question mark. One scheme allows more of them.
func readOptions(u *url.URL, options, further, scheme string) (url.Values, error) {
	allowed := options
	if u.Scheme == scheme {
		allowed += ", " + further
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the URL's options cannot be read; write them as ?name=value&name=value, & in a value as %26")
	}
	for option, values := range query {
		if !slices.Contains(strings.Split(allowed, ", "), option) {
			return nil, errors.New("the URL has an unknown option; allowed after ?: " + options +
				", and with " + scheme + " " + further + " (write ? in a password as %3F)")
		}
		if len(values) > 1 || values[0] == "" {
			return nil, errors.New("the URL's option " + option + " is given twice or is empty")
		}
	}
	if db := query.Get("db"); db != "" && !isDatabase(db) {
		return nil, errors.New("the URL's db option is not a database number")
	}
	return query, nil
}

// readSecret reads the password from the file or variable that the options name, if any.
func (e *Endpoint) readSecret(query url.Values) error {
	for option, read := range map[string]func(string) (Secret, error){"password_file": SecretFromFile, "password_env": SecretFromEnvironment} {
		source := query.Get(option)
		if source == "" {
			continue
		}
		if e.Password != "" {
			return errors.New("the URL has more than one password; use only one of user:password, password_file and password_env")
		}
		found, err := read(source)
		if err != nil {
			return errors.New("the URL's option " + option + ": " + err.Error())
		}
		e.Password = found
	}
	return nil
}

// readServerTLS reads the options by which the proxy checks a server's certificate, and
// those of its own certificate.
func readServerTLS(query url.Values, host string) (*TLS, error) {
	options := TLSOptions{
		CertFile: query.Get("cert_file"), KeyFile: query.Get("key_file"), CACertFile: query.Get("ca_cert_file"),
		ServerName: query.Get("server_name"),
	}
	if options.ServerName == "" {
		options.ServerName = host
	}
	fail := func(option string, err error) (*TLS, error) {
		return nil, errors.New("the URL's option " + option + " " + err.Error())
	}
	for _, option := range []string{"cert_file", "key_file", "ca_cert_file"} {
		if path := query.Get(option); path != "" {
			if err := CheckPath(path); err != nil {
				return fail(option, err)
			}
		}
	}
	if skip := query.Get("skip_verify"); skip != "" {
		var err error
		if options.SkipVerify, err = strconv.ParseBool(skip); err != nil {
			return fail("skip_verify", errors.New("is neither true nor false"))
		}
	}
	files, err := OpenTLS(options)
	if file, ok := errors.AsType[TLSError](err); ok {
		return fail(file.Option, file.Err)
	}
	return files, err
}

func isDatabase(text string) bool {
	n, err := strconv.ParseUint(text, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == text
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
