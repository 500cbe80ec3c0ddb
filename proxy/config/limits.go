package config

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
)

// Limits keep one client, or many together, from exhausting the process. After a reload,
// the new limits hold from each client's next command on.
type Limits struct {
	Clients        int           `yaml:"clients" range:"1 1000000"`            // connections at once
	LoginTime      time.Duration `yaml:"login_time" range:"0s 8760h"`          // from connecting to AUTH, if a login is needed
	Idle           time.Duration `yaml:"idle" range:"0s 8760h"`                // silence of a client; 0: no limit
	UnreadTime     time.Duration `yaml:"unread_time" range:"0s 8760h"`         // for which a client does not read its replies; 0: no limit
	Bulk           int64         `yaml:"bulk" range:"1mb 4gb"`                 // bytes of one argument
	Multibulk      int           `yaml:"multibulk" range:"1024 2147483647"`    // arguments of one command
	Inline         int64         `yaml:"inline" range:"1kb 1mb"`               // bytes of an inline command, and of a line with a length
	LoginMultibulk int           `yaml:"login_multibulk" range:"7 2147483647"` // arguments of a command before AUTH; HELLO with AUTH and SETNAME takes 7
	LoginBulk      int64         `yaml:"login_bulk" range:"1kb 1gb"`           // bytes of one argument before AUTH
	Query          int64         `yaml:"query" range:"1mb 64gb"`               // bytes of one unfinished command
	Output         int64         `yaml:"output" range:"64kb 64gb"`             // bytes of messages from the masters that a client has not read
	LockCommand    int64         `yaml:"lock_command" range:"1kb 64mb"`        // bytes of one lock command, and of all of a transaction
	LockKeys       int           `yaml:"lock_keys" range:"16 1000000"`         // keys of one lock command, and of all commands of a transaction
	LockReply      int64         `yaml:"lock_reply" range:"64kb 256mb"`        // bytes of a master's answer to a lock command
	Transaction    int64         `yaml:"transaction" range:"64kb 64gb"`        // bytes of commands queued after MULTI before the first with a key
	Subscriptions  int           `yaml:"subscriptions" range:"1 2147483647"`   // channels of locks and patterns that one client subscribes to
	Scripts        int64         `yaml:"scripts" range:"1mb 64gb"`             // bytes of remembered script texts, for all clients together
	SlowCommand    time.Duration `yaml:"slow_command" range:"0s 8760h"`        // from which on a lock command is in REDLOCK SLOWLOG; 0: none is
	Memory         int64         `yaml:"memory" range:"8mb 1024gb"`            // bytes of all buffers for all clients together
}

// DefaultLimits are Redis's own limits, and generous ones if Redis has no such limit.
func DefaultLimits() Limits {
	return Limits{
		Clients: 10_000, LoginTime: time.Minute, UnreadTime: 5 * time.Minute,
		Bulk: wire.RedisLimits.Bulk, Multibulk: wire.RedisLimits.Multibulk, Inline: int64(wire.RedisLimits.Inline),
		LoginMultibulk: wire.RedisLimits.LoginMultibulk, LoginBulk: wire.RedisLimits.LoginBulk,
		Query: 1 << 30, Output: 32 << 20, Transaction: 512 << 20, Subscriptions: 100_000,
		LockCommand: 1 << 20, LockKeys: 1000, LockReply: 4 << 20,
		Scripts: 64 << 20, SlowCommand: 100 * time.Millisecond, Memory: 2 << 30,
	}
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

// A Limit is one limit with its name.
type Limit struct {
	Name  LimitName
	place any // *int: a number; *int64: bytes; *time.Duration
}

// Table returns all limits in the order in which they are shown.
func (l *Limits) Table() (table []Limit) {
	value := reflect.ValueOf(l).Elem()
	names, fields := tagged(value.Type())
	for i, field := range fields {
		table = append(table, Limit{LimitName(names[i]), value.FieldByIndex(field.Index).Addr().Interface()})
	}
	return table
}

// Text is the value in the notation of the file.
func (l Limit) Text() string {
	switch place := l.place.(type) {
	case *int:
		return strconv.Itoa(*place)
	case *int64:
		return shortSize(*place)
	case *time.Duration:
		return ShortDuration(*place)
	}
	panic(fmt.Sprintf("limit %s has no unit", l.Name))
}
