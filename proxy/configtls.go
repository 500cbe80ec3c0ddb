package proxy

import "errors"

// TLS is the address where clients connect over TLS, beside the plain one or
// instead of it.
type TLS struct {
	Listen      string `yaml:"listen"` // host:port; empty: none
	CertFile    string `yaml:"cert_file"`
	KeyFile     string `yaml:"key_file"`
	CACertFile  string `yaml:"ca_cert_file"`
	AuthClients string `yaml:"auth_clients" oneof:"no optional yes"`

	files *tlsFiles // set with Listen
}

func (t TLS) authClients() string {
	if t.files == nil {
		return ""
	}
	return t.files.options().authClients
}

// tls reads the files, which are what Redis calls tls-cert-file, tls-key-file
// and tls-ca-cert-file.
func (c configChecks) tls() {
	t := &c.cfg.TLS
	c.check("tls.cert_file", checkPath(t.CertFile))
	c.check("tls.key_file", checkPath(t.KeyFile))
	c.check("tls.ca_cert_file", checkPath(t.CACertFile))
	if !c.sound("tls") {
		return
	}
	options := tlsOptions{certFile: t.CertFile, keyFile: t.KeyFile, caCertFile: t.CACertFile, authClients: t.AuthClients}
	if options.authClients == "" && options.caCertFile != "" {
		options.authClients = "yes"
	}
	option, err := checkListener(t.Listen != "", options)
	if err == nil && t.Listen != "" {
		t.files, err = openTLSFiles(options)
		var file tlsFileError
		if errors.As(err, &file) {
			option, err = file.option, file.err
		}
	}
	if err != nil {
		c.failTLS(option, err)
	}
}

// failTLS reports a problem at an option, or at tls where that does not have it.
func (c configChecks) failTLS(option string, err error) {
	if key := "tls." + option; c.has(key) {
		c.fail(key, "%s", err)
		return
	}
	c.fail("tls", "%s", err)
}

// checkListener finds what a listener needs, before any file is read.
func checkListener(listens bool, o tlsOptions) (option string, err error) {
	switch {
	case !listens && o != tlsOptions{}:
		return "listen", errors.New("names no address for these files; write tls.listen, such as 0.0.0.0:6390")
	case !listens:
		return "", nil
	case o.certFile == "" && o.keyFile == "":
		return "listen", errors.New("needs cert_file and key_file")
	case o.caCertFile == "" && o.authClients != "" && o.authClients != "no":
		return "auth_clients", errors.New("needs ca_cert_file, by which the clients' certificates are known")
	}
	return "", nil
}

// describeTLS is what -check shows of the files.
func describeTLS(t TLS) string {
	if t.files == nil {
		return ""
	}
	text := "certificate " + t.files.options().certFile
	if expires := t.files.expires(); !expires.IsZero() {
		text += " until " + expires.UTC().Format("2006-01-02")
	}
	if auth := t.authClients(); auth != "" && auth != "no" {
		text += ", clients' certificates by " + t.files.options().caCertFile
		if auth == "optional" {
			text += " (optional)"
		}
	}
	return text
}
