package quorum

// Verdict is the outcome of a ballot.
type Verdict uint8

const (
	Pending  Verdict = iota // the missing votes can still change it
	Won                     // a quorum granted, in time
	Lost                    // enough masters answered, and a quorum did not grant
	NoQuorum                // too few masters answered to know
)

func (v Verdict) String() string { return [...]string{"pending", "won", "lost", "noquorum"}[v] }
