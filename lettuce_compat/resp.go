package lettucecompat

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// This file is what travels on a connection of our own: commands, and the values that come. Scripts travel in RESP2, in which a server
// says nothing unasked; a tracking connection needs RESP3. A value of another kind ends the connection: the other side may be anybody.

const (
	maxReply    = 64 << 20 // bytes of a reply; the longest is Inspect's, of a Semaphore that very many clients have
	maxElements = 1 << 20  // of all its arrays
	maxDepth    = 8        // of arrays in arrays
	maxLine     = 64 << 10 // bytes of an error, a number or a length; go-redis refuses longer ones too

	// The kinds of values that may come.
	resp2 = "+-:$*"
	resp3 = resp2 + ">%~_#,("
)

// errReply ends a connection: what comes on it is no reply to a command of ours.
var errReply = errors.New("the server has sent what is no reply to a command of ours")

// answerError is an error that the server has answered with, or a script, as text, about one key of a batch.
type answerError string

func (e answerError) Error() string { return string(e) }

// RedisError marks it as an answer of the server, as go-redis does.
func (e answerError) RedisError() {}

// appendHeader begins a command of so many arguments.
func appendHeader(b []byte, args int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(args), 10)
	return append(b, "\r\n"...)
}

// appendArg appends an argument.
func appendArg[T string | []byte](b []byte, arg T) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(arg)), 10)
	b = append(b, "\r\n"...)
	b = append(b, arg...)
	return append(b, "\r\n"...)
}

// appendAny appends an argument that a hook may have put there, as go-redis writes it. Kinds that no argument of ours has, and that a
// hook need not put there, are refused.
func appendAny(b []byte, arg any) ([]byte, error) {
	switch a := arg.(type) {
	case string:
		return appendArg(b, a), nil
	case []byte:
		return appendArg(b, a), nil
	case int, int32, int64, uint32, uint64:
		return appendArg(b, fmt.Sprint(a)), nil
	case encoding.BinaryMarshaler:
		text, err := a.MarshalBinary()
		return appendArg(b, text), err
	}
	return b, fmt.Errorf("a hook has put a %T among the arguments of a script", arg)
}

// scan finds the end of the first value in what has come, and checks it. It goes on with the part at which it was when it comes again
// with more, so a long value is not looked at anew.
type scan struct {
	kinds    string        // that may come
	at       int           // all before is checked
	left     [maxDepth]int // of each array that it is in: elements to come
	depth    int
	elements int
}

// next returns the length of the value at the beginning of b. 0: it is not complete. An error: it is none.
func (s *scan) next(b []byte) (n int, err error) {
	for {
		kind, line, end, err := s.line(b)
		if err != nil {
			return 0, err
		}
		bytes, elements, ok := 0, 0, true
		switch {
		case end == 0:
		case kind == ':':
			_, ok = number(line)
		case kind == '$':
			if bytes, ok = size(line); bytes >= 0 {
				end += bytes + len("\r\n")
			}
		case isArray(kind):
			elements, ok = size(line)
		}
		switch {
		case !ok:
			return 0, errReply
		case end == 0 || end > len(b):
			if len(b) > maxReply {
				return 0, errReply
			}
			return 0, nil
		case kind == '$' && bytes >= 0 && string(b[end-2:end]) != "\r\n":
			return 0, errReply
		}
		s.at = end
		if elements > 0 {
			if kind == '%' {
				elements *= 2
			}
			if s.elements += elements; s.depth == maxDepth || s.elements > maxElements {
				return 0, errReply
			}
			s.left[s.depth] = elements
			s.depth++
			continue
		}
		for s.depth > 0 {
			if s.left[s.depth-1]--; s.left[s.depth-1] > 0 {
				break
			}
			s.depth--
		}
		if s.depth == 0 {
			*s = scan{kinds: s.kinds}
			return end, nil
		}
	}
}

// line returns the line at which s is: its kind, what stands there, and its end; 0: it is not complete.
func (s *scan) line(b []byte) (kind byte, line []byte, end int, err error) {
	rest := b[s.at:]
	for i, c := range rest {
		switch {
		case i == 0 && strings.IndexByte(s.kinds, c) < 0:
			return 0, nil, 0, errReply
		case c == '\n' && i >= 2 && rest[i-1] == '\r':
			return rest[0], rest[1 : i-1], s.at + i + 1, nil
		case c == '\n', i > maxLine, i > 0 && rest[i-1] == '\r':
			return 0, nil, 0, errReply
		}
	}
	return 0, nil, 0, nil
}

// isArray reports whether so many values follow.
func isArray(kind byte) bool { return kind == '*' || kind == '>' || kind == '~' || kind == '%' }

// size reads the number of bytes or elements; -1: there is no value.
func size(line []byte) (int, bool) {
	n, ok := number(line)
	return int(n), ok && n >= -1 && n <= maxReply
}

// value reads the value at the beginning of b, which is whole and right: as go-redis has it (int64, string, []any, redis.Nil, or an
// error with RedisError). It keeps nothing of b. An error in an array is one of its elements.
func value(b []byte) (v any, rest []byte) {
	kind, line, rest := first(b)
	size, _ := number(line)
	switch {
	case kind == '-':
		return answerError(line), rest
	case kind == ':':
		return size, rest
	case kind != '$' && !isArray(kind):
		return string(line), rest
	case size < 0:
		return redis.Nil, rest
	case kind == '$':
		return string(rest[:size]), rest[size+2:]
	case kind == '%':
		size *= 2
	}
	all := make([]any, size)
	for i := range all {
		if all[i], rest = value(rest); all[i] == redis.Nil {
			all[i] = nil
		}
	}
	return all, rest
}

// texts are the strings in a value, which is whole and right, in order.
func texts(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			kind, line, rest := first(b)
			b = rest
			if size, _ := number(line); kind == '$' && size >= 0 {
				if !yield(rest[:size]) {
					return
				}
				b = rest[size+2:]
			}
		}
	}
}

// first returns the first line of b, which is right, and what comes behind it.
func first(b []byte) (kind byte, line, rest []byte) {
	end := bytes.IndexByte(b, '\n')
	return b[0], b[1 : end-1], b[end+1:]
}

// number reads a decimal number of 64 bits.
func number(text []byte) (n int64, ok bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = 10*u + uint64(c-'0') // 19 digits are less than 2^64
	}
	switch {
	case negative && u <= math.MaxInt64+1:
		return -int64(u), true
	case !negative && u <= math.MaxInt64:
		return int64(u), true
	}
	return 0, false
}
