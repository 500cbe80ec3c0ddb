package config

import (
	"time"

	"redlock-proxy/proxy/wire"
)

// Limits keep one client, or many together, from exhausting the process. table.go says what
// each is. After a reload, the new limits hold from each client's next command on.
type Limits struct {
	Clients, Multibulk, LoginMultibulk, LockKeys, Subscriptions                                  int
	Bulk, Inline, LoginBulk, Query, Output, LockCommand, LockReply, Transaction, Scripts, Memory int64 // bytes
	LoginTime, Idle, UnreadTime, SlowCommand                                                     time.Duration
}

// Framing returns the limits of a single command.
func (l *Limits) Framing() wire.Limits {
	return wire.Limits{
		Bulk: l.Bulk, Multibulk: l.Multibulk, Inline: int(l.Inline),
		LoginMultibulk: l.LoginMultibulk, LoginBulk: l.LoginBulk,
	}
}

// A LimitName is a limit's key in the file, and its label in the metric that
// counts how often it was reached. Package wire has the names of the limits of one command.
type LimitName = wire.Limit

const (
	LimitClients       LimitName = "clients"
	LimitLoginTime     LimitName = "login_time"
	LimitIdle          LimitName = "idle"
	LimitUnreadTime    LimitName = "unread_time"
	LimitQuery         LimitName = "query"
	LimitOutput        LimitName = "output"
	LimitLockCommand   LimitName = "lock_command"
	LimitLockKeys      LimitName = "lock_keys"
	LimitTransaction   LimitName = "transaction"
	LimitSubscriptions LimitName = "subscriptions"
	LimitScripts       LimitName = "scripts"
	LimitSlowCommand   LimitName = "slow_command"
	LimitMemory        LimitName = "memory"
)
