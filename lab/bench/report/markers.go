package report

import (
	"fmt"
	"strings"

	"github.com/anteroom/anteroom/lab/bench/measure"
)

const (
	begin = "<!-- bench:begin "
	after = " -->"
	end   = "<!-- bench:end -->"
)

// Rewrite regenerates every block of a document. missing are the blocks that stay unchanged because their results are
// missing (I2).
func Rewrite(document string, results []measure.Result) (text string, missing []string, err error) {
	var out strings.Builder
	for rest := document; ; {
		before, tail, found := strings.Cut(rest, begin)
		out.WriteString(before)
		if !found {
			return out.String(), missing, nil
		}
		name, tail, ok := strings.Cut(tail, after)
		old, tail, closed := strings.Cut(tail, end)
		if !ok || !closed || strings.Contains(old, begin) {
			return "", nil, fmt.Errorf("the block %q has no end", name)
		}
		made, there, err := block(name, results)
		if err != nil {
			return "", nil, err
		}
		out.WriteString(begin + name + after)
		if there {
			out.WriteString("\n" + strings.TrimSpace(made) + "\n")
		} else {
			missing = append(missing, name)
			out.WriteString(old)
		}
		out.WriteString(end)
		rest = tail
	}
}

// maker makes one kind of block. It returns "" if results are missing.
type maker func(s set, args []string) string

// makers has the kinds of blocks.
var makers = map[string]maker{
	"targets":  targets,
	"settings": settings,
	"table":    table,
	"matrix":   matrix,
	"choice":   choice,
	"own":      own,
	"growth":   growing,
	"estimate": estimate,
	"better":   better,
}

func block(name string, results []measure.Result) (text string, there bool, err error) {
	words := strings.Fields(name)
	if len(words) == 0 || makers[words[0]] == nil {
		return "", false, fmt.Errorf("nobody knows how to make the block %q", name)
	}
	text = makers[words[0]](set(results), words[1:])
	return text, text != "", nil
}
