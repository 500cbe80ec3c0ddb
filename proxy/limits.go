package proxy

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// Limits keep one client, or many, from using the process up. All of them
// hold from a client's next command on when the configuration is reloaded.
type Limits struct {
	Clients        int           // connections at once
	LoginTime      time.Duration // from connecting to AUTH, where that is asked for
	Idle           time.Duration // silence of a client; 0: a client may be silent for ever
	UnreadTime     time.Duration // a client's not reading its replies; 0: for ever
	Bulk           int64         // bytes of one argument
	Multibulk      int           // arguments of one command
	Inline         int64         // bytes of an inline command, and of a line that holds a length
	LoginMultibulk int           // arguments of a command before AUTH
	LoginBulk      int64         // bytes of one argument before AUTH
	Query          int64         // bytes of one unfinished command
	Output         int64         // bytes of messages from the masters that a client has not read
	Transaction    int64         // bytes of commands queued between MULTI and EXEC
	Subscriptions  int           // channels of locks and patterns that one client subscribes to
	Scripts        int64         // bytes of script texts remembered, of all clients
	Memory         int64         // bytes of all that is buffered for all clients together
}

// defaultLimits are Redis's where it has the same limit, and else generous.
func defaultLimits() Limits {
	return Limits{
		Clients: 10_000, LoginTime: time.Minute, UnreadTime: 5 * time.Minute,
		Bulk: redisLimits.bulk, Multibulk: redisLimits.multibulk, Inline: int64(redisLimits.inline),
		LoginMultibulk: redisLimits.loginMultibulk, LoginBulk: redisLimits.loginBulk,
		Query: 1 << 30, Output: 32 << 20, Transaction: 512 << 20, Subscriptions: 100_000,
		Scripts: 64 << 20, Memory: 2 << 30,
	}
}

// framing is what of them bounds a single command.
func (l *Limits) framing() guardLimits {
	return guardLimits{
		bulk: l.Bulk, multibulk: l.Multibulk, inline: int(l.Inline),
		loginMultibulk: l.LoginMultibulk, loginBulk: l.LoginBulk,
	}
}

// masterReply is how many bytes one master may have a stream hold at a time.
// With it a broken master cannot use up what all clients share.
func (l *Limits) masterReply() int64 { return l.Memory / 8 }

// filesFor is how many open files so many clients may need: one each, one for
// its upstream connection, and some for masters, listeners and the system.
func filesFor(clients int) uint64 { return uint64(2*clients + 100) }

// A fileWatch tells an operator that the system's limit of open files will keep
// clients out before limits.clients does, once so many are connected that it is
// near.
type fileWatch struct {
	allowed func() (uint64, bool)
	log     *slog.Logger
	told    bool
}

func (w *fileWatch) look(clients int, limits *Limits) {
	allowed, known := w.allowed()
	near := filesFor(clients) > allowed/5*4
	switch {
	case !known || filesFor(limits.Clients) <= allowed || filesFor(clients) < allowed/2:
		w.told = false
	case near && !w.told:
		w.told = true
		w.log.Warn("the open files that this process may have will be used up before limits.clients is reached; raise that (ulimit -n, LimitNOFILE=) or lower limits.clients",
			"clients", clients, "limits.clients", limits.Clients, "open_files_allowed", allowed)
	}
}

// A limitName is a limit's key in the file, and its label in the metric that
// counts how often it was reached.
type limitName string

const (
	limitClients        limitName = "clients"
	limitLoginTime      limitName = "login_time"
	limitIdle           limitName = "idle"
	limitUnreadTime     limitName = "unread_time"
	limitBulk           limitName = limitName(framingBulk)
	limitMultibulk      limitName = limitName(framingMultibulk)
	limitInline         limitName = limitName(framingInline)
	limitLoginMultibulk limitName = limitName(framingLoginMultibulk)
	limitLoginBulk      limitName = limitName(framingLoginBulk)
	limitQuery          limitName = "query"
	limitOutput         limitName = "output"
	limitTransaction    limitName = "transaction"
	limitSubscriptions  limitName = "subscriptions"
	limitScripts        limitName = "scripts"
	limitMemory         limitName = "memory"
)

// A limit is one row of the table: where its value is, in its own unit, and
// what may be configured.
type limit struct {
	name     limitName
	place    any // *int: a number; *int64: bytes; *time.Duration
	from, to int64
}

// table is every limit there is, in the order in which they are shown.
func (l *Limits) table() []limit {
	const (
		mega, giga = 1 << 20, 1 << 30
		year       = int64(365 * 24 * time.Hour)
		most       = 1<<31 - 1
	)
	return []limit{
		{limitClients, &l.Clients, 1, 1_000_000},
		{limitLoginTime, &l.LoginTime, 0, year},
		{limitIdle, &l.Idle, 0, year},
		{limitUnreadTime, &l.UnreadTime, 0, year},
		{limitBulk, &l.Bulk, mega, 4 * giga},
		{limitMultibulk, &l.Multibulk, 1024, most},
		{limitInline, &l.Inline, 1 << 10, mega},
		{limitLoginMultibulk, &l.LoginMultibulk, unauthenticatedLeast, most},
		{limitLoginBulk, &l.LoginBulk, 1 << 10, giga},
		{limitQuery, &l.Query, mega, 64 * giga},
		{limitOutput, &l.Output, 64 << 10, 64 * giga},
		{limitTransaction, &l.Transaction, 64 << 10, 64 * giga},
		{limitSubscriptions, &l.Subscriptions, 1, most},
		{limitScripts, &l.Scripts, mega, 64 * giga},
		{limitMemory, &l.Memory, 8 * mega, 1024 * giga},
	}
}

// unauthenticatedLeast is what HELLO with AUTH and SETNAME takes.
const unauthenticatedLeast = 7

// text is the value as the file would have it.
func (l limit) text() string {
	switch place := l.place.(type) {
	case *int:
		return strconv.Itoa(*place)
	case *int64:
		return shortSize(*place)
	case *time.Duration:
		return shortDuration(*place)
	}
	panic(fmt.Sprintf("limit %s has no unit", l.name))
}

// field reads the limit from the file.
func (l limit) field(r *configReader) yamlField {
	switch place := l.place.(type) {
	case *int:
		return r.integer(string(l.name), place, int(l.from), int(l.to))
	case *int64:
		return r.text(string(l.name), "a size", keep(place, func(text string) (int64, error) {
			return parseSize(text, l.from, l.to)
		}))
	case *time.Duration:
		return r.duration(string(l.name), place, time.Duration(l.from), time.Duration(l.to))
	}
	panic(fmt.Sprintf("limit %s has no unit", l.name))
}
