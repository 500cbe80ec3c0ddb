package config

import (
	"errors"

	"redlock-proxy/proxy/endpoint"
)

// TLS is the address at which clients connect over TLS, besides the plain one or instead
// of it.
type TLS struct {
	Listen, CertFile, KeyFile, CACertFile, AuthClients string

	Files *endpoint.TLS // set if and only if Listen is
}

// tls reads the files. Redis's names for them are tls-cert-file, tls-key-file and
// tls-ca-cert-file.
func (r *configReader) tls() {
	t := &r.cfg.TLS
	if !r.sound("tls") {
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
		r.failTLS(option, err)
	}
}

// failTLS reports a problem at an option, or at tls if the file does not have the option.
func (r *configReader) failTLS(option string, err error) {
	if key := "tls." + option; r.has(key) {
		r.fail(key, "%s", err)
		return
	}
	r.fail("tls", "%s", err)
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

// describeCertificate describes the proxy's certificate for -check.
func (t TLS) describeCertificate() string {
	if expires := t.Files.Expires(); !expires.IsZero() {
		return t.CertFile + " until " + expires.UTC().Format("2006-01-02")
	}
	return t.CertFile
}
