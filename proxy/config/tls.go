package config

import (
	"errors"

	"redlock-proxy/proxy/endpoint"
)

// TLS is the address at which clients connect over TLS, besides the plain one or instead
// of it.
type TLS struct {
	Listen      string `yaml:"listen"` // host:port; empty: none
	CertFile    string `yaml:"cert_file"`
	KeyFile     string `yaml:"key_file"`
	CACertFile  string `yaml:"ca_cert_file"`
	AuthClients string `yaml:"auth_clients" oneof:"no optional yes"`

	Files *endpoint.TLS // set if and only if Listen is
}

// tls reads the files. Redis's names for them are tls-cert-file, tls-key-file and
// tls-ca-cert-file.
func (c configChecks) tls() {
	t := &c.cfg.TLS
	c.check("tls.cert_file", endpoint.CheckPath(t.CertFile))
	c.check("tls.key_file", endpoint.CheckPath(t.KeyFile))
	c.check("tls.ca_cert_file", endpoint.CheckPath(t.CACertFile))
	if !c.sound("tls") {
		return
	}
	if t.AuthClients == "" && t.CACertFile != "" {
		t.AuthClients = "yes"
	}
	options := endpoint.TLSOptions{CertFile: t.CertFile, KeyFile: t.KeyFile, CACertFile: t.CACertFile, AuthClients: t.AuthClients}
	option, err := checkListener(t.Listen != "", options)
	if err == nil && t.Listen != "" {
		t.Files, err = endpoint.OpenTLS(options)
		if file, ok := errors.AsType[endpoint.TLSError](err); ok {
			option, err = file.Option, file.Err
		}
	}
	if err != nil {
		c.failTLS(option, err)
	}
}

// failTLS reports a problem at an option, or at tls if the file does not have the option.
func (c configChecks) failTLS(option string, err error) {
	if key := "tls." + option; c.has(key) {
		c.fail(key, "%s", err)
		return
	}
	c.fail("tls", "%s", err)
}

// checkListener reports an option that is missing or useless, before any file is read.
func checkListener(listens bool, o endpoint.TLSOptions) (option string, err error) {
	switch {
	case !listens && o != endpoint.TLSOptions{}:
		return "listen", errors.New("has files and no address; add tls.listen, such as 0.0.0.0:6390")
	case !listens:
		return "", nil
	case o.CertFile == "" && o.KeyFile == "":
		return "listen", errors.New("needs cert_file and key_file")
	case o.CACertFile == "" && o.AuthClients != "" && o.AuthClients != "no":
		return "auth_clients", errors.New("needs ca_cert_file to verify the clients' certificates")
	}
	return "", nil
}

// Describe describes the files for -check.
func (t TLS) Describe() string {
	if t.Files == nil {
		return ""
	}
	text := "certificate " + t.CertFile
	if expires := t.Files.Expires(); !expires.IsZero() {
		text += " until " + expires.UTC().Format("2006-01-02")
	}
	if auth := t.AuthClients; auth != "" && auth != "no" {
		text += ", clients' certificates by " + t.CACertFile
		if auth == "optional" {
			text += " (optional)"
		}
	}
	return text
}
