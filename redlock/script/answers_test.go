package script

import (
	"slices"
	"strings"
	"testing"
)

// A script is recognised only if its answer tells whether it deleted: no other answer can be equal.
func TestWhichAnswersTellADeletion(t *testing.T) {
	const fits = "local v = redis.call('get', KEYS[1]) if v == ARGV[1] then redis.call('del', KEYS[1]) return 1 end return 0"
	for text, want := range map[string]bool{
		fits: true,
		strings.Replace(fits, "return 1", "return v", 1):                                          true,
		strings.Replace(fits, "return 0", "return v", 1):                                          true,
		strings.NewReplacer("return 1", "return v", "return 0", "return v").Replace(fits):         true,
		strings.NewReplacer("return 1", "return 'x'", "return 0", "return v").Replace(fits):       false,
		strings.NewReplacer("return 1", "return 'x'", "return 0", "return ARGV[1]").Replace(fits): false,
		strings.NewReplacer("return 1", "return v", "return 0", "return 'x'").Replace(fits):       false,
		strings.Replace(fits, "return 0", "return redis.call('publish', KEYS[2], ARGV[2])", 1):    false,
		strings.Replace(fits, "return 1", "return redis.call('publish', KEYS[2], ARGV[2])", 1):    false,
		strings.Replace(fits, "return 1", "return ARGV[2]", 1):                                    false,
		strings.Replace(fits, "return 1", "return redis.error_reply('NO')", 1):                    false,
		fits + strings.Repeat(" ", maxText):                                                       false,
	} {
		if _, recognised := Recognise([]byte(text)); recognised != want {
			t.Errorf("%.200s: recognised %v", text, recognised)
		}
	}
	r, _ := Recognise([]byte(strings.Replace(fits, "return 0", "return redis.error_reply('NOTYOURS it is')", 1)))
	if r == nil || !slices.Equal(r.Errors(), []string{"NOTYOURS it is"}) {
		t.Errorf("its own errors are %v", r)
	}
}
