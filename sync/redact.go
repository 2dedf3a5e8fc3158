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

// withheld replaces a name that was taken out of a text.
const withheld = "(withheld)"

// wordsOf returns the text of err without key and prefix; in what others have said, hidden names are taken out.
func wordsOf(err error, hidden ...string) string { return hiding(false, hidden).of(err) }

// shownOf is wordsOf for where keys are shown.
func shownOf(err error, hidden ...string) string { return hiding(true, hidden).of(err) }

func hiding(keys bool, hidden []string) words {
	return words{keys: keys, foreign: func(text string) string { return without(text, hidden...) }}
}

// without takes names out of what somebody else has said, as they are and as Go quotes them,
// and the arguments that a server repeats. A long name goes first: a short one may be a part
// of it. One of less than four bytes is taken out between quotation marks only: the letters
// of a key "a" are everywhere.
func without(text string, names ...string) string {
	if before, _, found := strings.Cut(text, echo); found {
		text = before + ", with arguments " + withheld
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		quoted := strconv.Quote(name)
		for _, form := range []string{name, quoted[1 : len(quoted)-1]} {
			switch {
			case len(name) >= 4:
				text = strings.ReplaceAll(text, form, withheld)
			case name != "":
				for _, mark := range []string{`"`, `'`, "`"} {
					text = strings.ReplaceAll(text, mark+form+mark, mark+withheld+mark)
				}
			}
		}
	}
	return text
}
