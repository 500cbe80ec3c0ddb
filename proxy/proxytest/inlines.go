package proxytest

// InlineLines holds inline commands, without their line ends, and their arguments. Args
// is nil if the quotes are unbalanced.
var InlineLines = []struct {
	Text string
	Args []string
}{
	{`ECHO hi`, []string{"ECHO", "hi"}},
	{"  ECHO \t hi\t ", []string{"ECHO", "hi"}},
	{"\v\fECHO hi", []string{"ECHO", "hi"}},
	// A word does not end at \v or \f, although these may be in the space before it.
	{"ECHO a\vb\fc", []string{"ECHO", "a\vb\fc"}},
	{"ECHO a\v b", []string{"ECHO", "a\v", "b"}},
	{"ECHO\ra", []string{"ECHO", "a"}},
	{`ECHO "a b"`, []string{"ECHO", "a b"}},
	{`ECHO 'a b'`, []string{"ECHO", "a b"}},
	{`ECHO ""`, []string{"ECHO", ""}},
	{`ECHO ''`, []string{"ECHO", ""}},
	{`""`, []string{""}},
	{`"" ""`, []string{"", ""}},
	{`"ECHO" "hi"`, []string{"ECHO", "hi"}},
	// A quote may open inside a word. The word ends where the quote closes.
	{`ECHO a"b c"`, []string{"ECHO", "ab c"}},
	{`ECHO a'b c'`, []string{"ECHO", "ab c"}},
	{`ECHO a"b"c`, nil},
	{`ECHO "a"b`, nil},
	{`ECHO 'a'b`, nil},
	{`ECHO "a"'b'`, nil},
	{`ECHO 'a'"b"`, nil},
	{"ECHO \"a\"\vb", []string{"ECHO", "a", "b"}},
	{"ECHO \"a\"\rb", []string{"ECHO", "a", "b"}},
	{"ECHO 'a'\fb", []string{"ECHO", "a", "b"}},
	{`ECHO "a`, nil},
	{`ECHO 'a`, nil},
	{`ECHO "`, nil},
	{`ECHO '`, nil},
	{`ECHO a"`, nil},
	{`"`, nil},
	{`ECHO "a\"`, nil},
	{`ECHO "a\`, nil},
	{`ECHO 'a\'`, nil},
	{`ECHO "\x41\x4a\x4A\xff\x0a\x0d"`, []string{"ECHO", "AJJ\xff\n\r"}},
	{`ECHO "\x00a"`, []string{"ECHO", "\x00a"}},
	{`ECHO "\x4"`, []string{"ECHO", "x4"}},
	{`ECHO "\x"`, []string{"ECHO", "x"}},
	{`ECHO "\xg1\x1g"`, []string{"ECHO", "xg1x1g"}},
	{`ECHO "\X41"`, []string{"ECHO", "X41"}},
	{`ECHO "\x4`, nil},
	{`ECHO "\x41`, nil},
	{`ECHO "\n\r\t\b\a\v\f\0\\\"\'\ "`, []string{"ECHO", "\n\r\t\b\avf0\\\"' "}},
	{`ECHO '\n\x41\\\"\''`, []string{"ECHO", `\n\x41\\\"'`}},
	{`ECHO \n`, []string{"ECHO", `\n`}},
	{`ECHO a\"b"`, []string{"ECHO", `a\b`}},
	{`ECHO "it's"`, []string{"ECHO", "it's"}},
	{`ECHO 'say "x"'`, []string{"ECHO", `say "x"`}},
	{"ECHO \x80\xff\xa0\x85", []string{"ECHO", "\x80\xff\xa0\x85"}},
	{`EVAL "return ARGV" 0 "a b" 'c\'d' e"f g" ""`, []string{"EVAL", "return ARGV", "0", "a b", "c'd", "ef g", ""}},
}
