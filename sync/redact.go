package anteroom

import (
	"strconv"
	"strings"
)

// echo is where a server's answer begins to repeat what it was sent: "ERR unknown command
// 'evalsha', with args beginning with: …", for a command that was renamed or that a proxy
// does not pass on. Some arguments are cut in the middle, so names cannot be searched in it.
const echo = ", with args beginning with"

// withheld stands where a name was taken out of a text.
const withheld = "(withheld)"

// public returns a text of e as it may be logged: an answer of a server or of a proxy is
// not ours, and may repeat arguments. Keys stay with LogKeys; holders never do.
func (q *eventQueue) public(text string, e *Event) string {
	text = withoutEcho(text)
	if !q.logKeys {
		text = without(text, e.Key)
	}
	text = without(text, e.Holder)
	return without(text, q.clientID)
}

// withoutEcho takes out the arguments that a server repeats.
func withoutEcho(text string) string {
	if before, _, found := strings.Cut(text, echo); found {
		return before + ", with arguments " + withheld
	}
	return text
}

// without takes a name out of a text, as it is and as Go quotes it. One of less than four
// bytes is taken out between quotation marks only: the letters of a key "a" are everywhere.
func without(text, name string) string {
	if name == "" {
		return text
	}
	quoted := strconv.Quote(name)
	quoted = quoted[1 : len(quoted)-1]
	if len(name) >= 4 {
		text = strings.ReplaceAll(text, name, withheld)
		return strings.ReplaceAll(text, quoted, withheld)
	}
	for _, mark := range []string{`"`, `'`, "`"} {
		text = strings.ReplaceAll(text, mark+name+mark, mark+withheld+mark)
		text = strings.ReplaceAll(text, mark+quoted+mark, mark+withheld+mark)
	}
	return text
}
