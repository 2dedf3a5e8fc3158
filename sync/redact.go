package anteroom

import (
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/watchdog"
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
		text = withoutEcho(text)
		if !keys {
			text = without(text, e.Key)
		}
		text = without(text, e.Holder)
		return without(text, q.clientID)
	}}
}

// text returns the Text of e as the log shows it.
func (q *eventQueue) text(e *Event) string {
	if q.logKeys && e.named != "" {
		return e.named
	}
	if e.quotes() {
		return q.words(e, q.logKeys).foreign(e.Text)
	}
	return e.Text
}

// quotes tells whether the Text of e may quote an answer of a server: what the watchdog says
// of its questions to Redis. All other texts are ours, and name nobody.
func (e *Event) quotes() bool { return e.Kind == EventRecovery && quotes(e.Check) }

// quotes tells whether the reasons of a check may quote an answer of a server.
func quotes(check string) bool {
	return check != watchdog.Holder.String() && check != watchdog.Renewal.String()
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
