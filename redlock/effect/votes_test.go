package effect

import (
	"testing"

	"redlock-proxy/redlock/quorum"
)

// What one master deleted is nobody's because others do not answer: who has
// taken it from them may hold what it stands for.
func TestADeletionNeedsEqualVotesOfAQuorum(t *testing.T) {
	absent, there := Image{PTTL: NoKey}, Image{Dump: []byte("payload"), PTTL: NoExpiry}
	gave := quorum.Answer[Result]{State: quorum.Answered, Value: Result{Reply: []byte("$1\r\n1\r\n"), Before: []Image{there}, After: []Image{absent}}}
	none := quorum.Answer[Result]{State: quorum.Answered, Value: Result{Reply: []byte("$-1\r\n"), Before: []Image{absent}, After: []Image{absent}}}
	lost := quorum.Answer[Result]{State: quorum.Unknown}
	for _, row := range []struct {
		answers []quorum.Answer[Result]
		want    quorum.Verdict
	}{
		{[]quorum.Answer[Result]{gave, gave, gave, none, none}, quorum.Won},
		{[]quorum.Answer[Result]{gave, none, none, lost, lost}, quorum.NoQuorum},
		{[]quorum.Answer[Result]{gave, gave, none, lost, lost}, quorum.NoQuorum},
		{[]quorum.Answer[Result]{gave, gave, none, none, none}, quorum.Won}, // of nothing
	} {
		if got, _ := (Rule{}).Decide(row.answers); got != row.want {
			t.Errorf("%v, want %v", got, row.want)
		}
	}
}
