package anteroom

import (
	"slices"
	"strconv"
	"strings"
)

// echo is where a server's answer begins to repeat what it was sent: "ERR unknown command
// 'evalsha', with args beginning with: …", for a command that was renamed or that a proxy
// does not pass on. Some arguments are cut in the middle, so names cannot be searched in it.
const echo = ", with args beginning with"

// withheld stands where a name was taken out of a text.
const withheld = "(withheld)"

// words are those in which the log, a Tracer and Event.String speak of e: keys where they
// are shown, holders never.
func (q *eventQueue) words(e *Event, keys bool) words {
	return words{keys: keys, foreign: func(text string) string {
		names := []string{e.Holder, q.clientID}
		if !keys {
			names = append(names, e.Key)
		}
		return without(text, names...)
	}}
}

// text returns the Text of e as the log shows it. It is ours, and names nobody.
func (q *eventQueue) text(e *Event) string {
	if q.logKeys && e.named != "" {
		return e.named
	}
	return e.Text
}

// withoutEcho takes out the arguments that a server repeats.
func withoutEcho(text string) string {
	if before, _, found := strings.Cut(text, echo); found {
		return before + ", with arguments " + withheld
	}
	return text
}

// without takes names out of what somebody else has said, as they are and as Go quotes them,
// and the arguments that a server repeats. A long name goes first: a short one may be a part
// of it. One of less than four bytes is taken out between quotation marks only: the letters
// of a key "a" are everywhere.
func without(text string, names ...string) string {
	text = withoutEcho(text)
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		text = withoutName(text, name)
	}
	return text
}

func withoutName(text, name string) string {
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
