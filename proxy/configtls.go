package proxy

import (
	"errors"

	"gopkg.in/yaml.v3"
)

// TLS is the address where clients connect over TLS, beside the plain one or
// instead of it.
type TLS struct {
	Listen string    // host:port; empty: none
	files  *tlsFiles // set with Listen
}

func (t TLS) authClients() string {
	if t.files == nil {
		return ""
	}
	return t.files.options.authClients
}

// readTLS reads what Redis calls tls-port, tls-cert-file, tls-key-file,
// tls-ca-cert-file and tls-auth-clients.
func (r *configReader) readTLS(node *yaml.Node, key string) {
	before := len(r.problems)
	var options tlsOptions
	path := func(name string, place *string) yamlField {
		return r.text(name, "the path of a file", keep(place, func(text string) (string, error) {
			return text, checkPath(text)
		}))
	}
	lines := r.mapping(node, key,
		r.text("listen", "host:port, or \"\" for none", keep(&r.cfg.TLS.Listen, parseListenOrNone)),
		path("cert_file", &options.certFile),
		path("key_file", &options.keyFile),
		path("ca_cert_file", &options.caCertFile),
		r.choice("auth_clients", &options.authClients, "no", "optional", "yes"))
	if len(r.problems) > before {
		return
	}
	if options.authClients == "" && options.caCertFile != "" {
		options.authClients = "yes"
	}
	at := func(option string) (line int, path string) {
		if line, ok := lines[option]; ok {
			return line, joinKey(key, option)
		}
		return node.Line, key
	}
	option, err := options.checkListener(r.cfg.TLS.Listen != "", len(lines))
	if err == nil && r.cfg.TLS.Listen != "" {
		r.cfg.TLS.files, err = openTLSFiles(options)
		var file tlsFileError
		if errors.As(err, &file) {
			option, err = file.option, file.err
		}
	}
	if err != nil {
		line, path := at(option)
		r.fail(line, path, "%s", err)
	}
}

// checkListener finds what a listener needs, before any file is read.
func (o tlsOptions) checkListener(listens bool, options int) (option string, err error) {
	switch {
	case !listens && options > 1:
		return "listen", errors.New("names no address for these files; write tls.listen, such as 0.0.0.0:6390")
	case !listens:
		return "", nil
	case o.certFile == "" && o.keyFile == "":
		return "listen", errors.New("needs cert_file and key_file")
	case o.caCertFile == "" && o.authClients != "" && o.authClients != "no":
		return "auth_clients", errors.New("needs ca_cert_file, by which the clients' certificates are known")
	}
	return o.check()
}

func parseListenOrNone(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return parseListen(text, false)
}

// describeTLS is what -check shows of the files.
func describeTLS(t TLS) string {
	if t.files == nil {
		return ""
	}
	text := "certificate " + t.files.options.certFile
	if made := t.files.made.Load(); !made.expires.IsZero() {
		text += " until " + made.expires.UTC().Format("2006-01-02")
	}
	if auth := t.authClients(); auth != "" && auth != "no" {
		text += ", clients' certificates by " + t.files.options.caCertFile
		if auth == "optional" {
			text += " (optional)"
		}
	}
	return text
}
