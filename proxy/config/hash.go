package config

import (
	"encoding/json"
	"hash/fnv"
	"time"
)

// sharedSettings are the settings that proxies over the same masters should share. The hashed text has
// names and units of its own, so that different versions of the proxy show one hash.
type sharedSettings struct {
	Embedded      bool          `json:"embedded,omitempty"`
	Masters       []string      `json:"masters"`
	Rules         []sharedRule  `json:"rules"`
	MasterTimeout time.Duration `json:"master_timeout"`
	RetryCount    int           `json:"retry_count"`
	RetryDelay    time.Duration `json:"retry_delay"`
	ClockDrift    float64       `json:"clock_drift"`
	RestartDelay  time.Duration `json:"restart_delay"`
	MaxQuarantine time.Duration `json:"max_quarantine"`
}

type sharedRule struct {
	Match      string        `json:"match"`
	DB         int           `json:"db"`
	DefaultTTL time.Duration `json:"default_ttl,omitempty"`
	Wait       time.Duration `json:"wait,omitempty"`
	Renew      time.Duration `json:"renew,omitempty"`
	Release    bool          `json:"release,omitempty"`
	Companions []string      `json:"companions,omitempty"`
}

// Hash is equal for proxies that agree on all settings that proxies over the same masters should share.
// It covers no secret, and it fits the integers that a metric can show exactly.
func (cfg *Config) Hash() uint64 {
	shared := sharedSettings{
		Embedded: cfg.Masters.Embedded, Masters: cfg.Masters.Names(), MasterTimeout: cfg.MasterTimeout,
		RetryCount: cfg.Retry.Count, RetryDelay: cfg.Retry.Delay, ClockDrift: cfg.ClockDrift,
		RestartDelay: cfg.RestartDelay, MaxQuarantine: cfg.MaxQuarantine,
	}
	for _, rule := range cfg.Locks {
		shared.Rules = append(shared.Rules, sharedRule{rule.Match, rule.DB, rule.DefaultTTL, rule.Wait, rule.Renew, rule.Release, rule.Companions})
	}
	text, err := json.Marshal(shared)
	if err != nil {
		panic(err) // cannot happen with plain values
	}
	hash := fnv.New64a()
	hash.Write(text)
	return hash.Sum64() >> 12
}
