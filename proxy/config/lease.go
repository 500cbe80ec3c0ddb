package config

import "redlock-proxy/proxy/lease"

// LeaseRule returns what the current rules say about the lease of a key.
func (f *Active) LeaseRule(db int, key []byte) lease.Rule {
	if rule := f.Load().Router.Rules.Find(db, key); rule != nil {
		return lease.Rule{Renew: rule.Renew, Release: rule.Release}
	}
	return lease.Rule{}
}

// LeaseLimits returns the current settings that leases depend on.
func (f *Active) LeaseLimits() lease.Limits {
	cfg := f.Load().Config
	return lease.Limits{MasterTimeout: cfg.MasterTimeout, ClockDrift: cfg.ClockDrift}
}
