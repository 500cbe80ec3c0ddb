package redlock

import "redlock-proxy/redlock/notify"

// What a Subscriber hears, as package notify says.
type (
	Subscriber = notify.Subscriber
	Event      = notify.Event
	EventKind  = notify.EventKind
)

const (
	EventMessage        = notify.EventMessage
	EventPatternMessage = notify.EventPatternMessage
	EventChanged        = notify.EventChanged
	EventGap            = notify.EventGap
)
