package redlock

import (
	"testing"

	"redlock-proxy/redlock/quorum"
)

// What one master deleted is nobody's because others do not answer: who has
// taken it from them may hold what it stands for.
func TestRunADeletionNeedsEqualVotesOfAQuorum(t *testing.T) {
	absent, there := image{pttl: noKey}, image{dump: []byte("payload"), pttl: noExpiry}
	gave := quorum.Answer[examined]{State: quorum.Answered, Value: examined{reply: []byte("$1\r\n1\r\n"), before: []image{there}, after: []image{absent}}}
	none := quorum.Answer[examined]{State: quorum.Answered, Value: examined{reply: []byte("$-1\r\n"), before: []image{absent}, after: []image{absent}}}
	lost := quorum.Answer[examined]{State: quorum.Unknown}
	for _, row := range []struct {
		answers []quorum.Answer[examined]
		want    quorum.Verdict
	}{
		{[]quorum.Answer[examined]{gave, gave, gave, none, none}, quorum.Won},
		{[]quorum.Answer[examined]{gave, none, none, lost, lost}, quorum.NoQuorum},
		{[]quorum.Answer[examined]{gave, gave, none, lost, lost}, quorum.NoQuorum},
		{[]quorum.Answer[examined]{gave, gave, none, none, none}, quorum.Won}, // of nothing
	} {
		if got, _ := (runRule{}).decide(row.answers); got != row.want {
			t.Errorf("%v, want %v", got, row.want)
		}
	}
}
