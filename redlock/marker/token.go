package marker

import (
	"strconv"
	"time"
)

const tokenField = " token="

// MostToken is the largest token. Scripts calculate with it exactly.
const MostToken = 1<<53 - 1

// FirstToken returns the token with which a record begins of which nobody knows more. now is the
// wall clock of this process.
func FirstToken(now time.Time) int64 {
	// rule: tokens begin above what the clock says
	return now.UnixMilli()
}

// CutToken returns the text of a marker without the token at its end, and the token. It
// returns 0 if there is none.
func CutToken[T ~string | ~[]byte](text T) (rest T, token int64) {
	const mostDigits = 16
	at := len(text)
	for at > 0 && '0' <= text[at-1] && text[at-1] <= '9' {
		at--
	}
	rest, digits := text[:at], text[at:]
	if len(digits) == 0 || len(digits) > mostDigits || len(rest) < len(tokenField) || string(rest[at-len(tokenField):]) != tokenField {
		return text, 0
	}
	for i := range len(digits) {
		token = 10*token + int64(digits[i]-'0')
	}
	return rest[:at-len(tokenField)], token
}

// tokenSuffix returns the end of a marker's text.
func tokenSuffix(token int64) string {
	if token == 0 {
		return ""
	}
	return tokenField + strconv.FormatInt(token, 10)
}
