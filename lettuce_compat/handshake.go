package lettucecompat

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
)

// This file says why the server of a URL could not be asked. go-redis drops what a server says to a new connection
// before it is asked anything, and what is left is "EOF".

const (
	// noSuchScript is the digest of no script.
	noSuchScript = "0000000000000000000000000000000000000000"

	// diagnoseTime bounds how long Diagnose connects by itself, and diagnoseStep each of its steps.
	diagnoseTime = time.Second
	diagnoseStep = diagnoseTime / 4

	// sentinelsUnreachable is what go-redis puts in front of the Sentinels' errors, and not of an error of the master.
	sentinelsUnreachable = "redis: all sentinels specified in configuration are unreachable: "

	guessHost = "check host and port"
	guessTLS  = guessHost + ", and that both sides speak TLS or neither does"
	guessCert = "check the certificates of both sides"
)

// Greet is Ping that also asks whether the server knows scripts, which a Sentinel does not. What an ACL refuses is not
// asked here but by Rehearse.
func (c *Client) Greet(ctx context.Context, timeout time.Duration) error {
	if err := c.Ping(ctx, timeout); err != nil {
		return err
	}
	_, err := c.one(ctx, c.single.keep, newRedisCmd(0, "evalsha", noSuchScript, "0"), time.Now(), timeout)
	if unknownCommand(err) {
		return err
	}
	return nil
}

// unknownCommand reports whether a server has answered that it has no such command.
func unknownCommand(err error) bool {
	answer, answered := errors.AsType[redis.Error](err)
	return answered && strings.Contains(answer.Error(), "unknown command")
}

// handshakeError says in one sentence, which names the address, why a server could not be asked.
type handshakeError struct {
	text  string
	class class
	err   error // what go-redis said
}

func (e *handshakeError) Error() string { return e.text }
func (e *handshakeError) Unwrap() error { return e.err }

// target is what a URL leads to.
type target struct {
	network string
	addrs   []string // of the server, of Sentinels, or of nodes
	tls     *tls.Config
	master  string // its name, for Sentinels
}

func targetOf(url string) (t target, ok bool) {
	options, err := parse(url)
	if err != nil {
		return t, false
	}
	switch o := options.(type) {
	case *redis.Options:
		t = target{network: o.Network, addrs: []string{o.Addr}, tls: o.TLSConfig}
	case *redis.FailoverOptions:
		t = target{network: "tcp", addrs: o.SentinelAddrs, tls: o.TLSConfig, master: o.MasterName}
	case *redis.ClusterOptions:
		t = target{network: "tcp", addrs: o.Addrs, tls: o.TLSConfig}
	}
	return t, true
}

// Diagnose says why the first command to the server of url has failed with err: the address, what the server says, and
// a guess, "" where that says enough. The error wraps err, and has the class of what the server says. Where err says
// too little it connects once more, for a second at most and within ctx, and sends PING or ROLE: no password.
func Diagnose(ctx context.Context, url string, err error) (guess string, why error) {
	t, ok := targetOf(url)
	if !ok || errors.Is(err, context.Canceled) {
		return "", err
	}
	where := strings.Join(t.addrs, ", ")
	is := func(c class, format string, args ...any) error {
		return &handshakeError{fmt.Sprintf(format, args...), c, err}
	}
	guess = Guess(err)
	answer, answered := errors.AsType[redis.Error](err)
	atSentinels := strings.Contains(err.Error(), sentinelsUnreachable)
	atMaster := t.master != "" && !atSentinels && (answered || guess != guessTLS || errors.Is(err, io.EOF))
	if atMaster {
		where = fmt.Sprintf("the master of %q", t.master)
	}
	switch {
	case t.master != "" && errors.Is(err, redis.Nil):
		return "", is(classPermanent, "no Sentinel at %s knows %q", where, t.master)
	case unknownCommand(err) && atSentinels:
		return "", is(classPermanent, "%s is no Sentinel: for one server the URL is redis://%s", where, t.addrs[0])
	case unknownCommand(err) && !atMaster && t.isSentinel(ctx):
		return "", is(classPermanent, "%s is a Sentinel: the URL is redis+sentinel://%s/name-of-the-master", where, t.addrs[0])
	case unknownCommand(err):
		return "", is(classPermanent, "%s runs no scripts (EVALSHA), which locks need", where)
	case answered && strings.Contains(answer.Error(), "cluster support disabled"):
		return "", is(classPermanent, "%s is no Cluster: for one server the URL is redis://%s", where, t.addrs[0])
	case answered:
		return "", is(classifyAnswer(answer.Error()), "%s says: %s", where, sentence(answer.Error()))
	case guess == guessHost && atMaster:
		return "this machine cannot reach it", is(classUnreachable, "%s, as Sentinel says: %s", where, oneLine(err))
	case guess == guessHost: // the text has the address
		return guess, is(classUnreachable, "%s", oneLine(err))
	case guess == guessCert, atMaster, ctx.Err() != nil:
		return guess, is(classify(err), "%s: %s", where, oneLine(err))
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	text, class := "", classUnknown
	for _, addr := range t.addrs {
		if text, class, guess = t.diagnose(ctx, addr); class == classPermanent || class == classTransient {
			break
		}
	}
	if text == "" {
		text = where + ": " + oneLine(err)
	}
	return guess, is(class, "%s", text)
}

// Guess says what to check if err means that no answer came.
func Guess(err error) string {
	op, network := errors.AsType[*net.OpError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch {
	case certificate, alert:
		return guessCert
	case network && op.Op == "dial":
		return guessHost
	}
	return guessTLS
}

// diagnose connects to a server that could not be asked, and words what it finds; "" is nothing unusual.
func (t target) diagnose(ctx context.Context, addr string) (text string, c class, guess string) {
	heard, err := t.hear(ctx, addr, nil, "")
	if heard == "" && err == nil {
		heard, err = t.hear(ctx, addr, nil, "PING\r\n")
	}
	switch begins := func(s string) bool { return strings.HasPrefix(heard, s) }; {
	case err != nil && heard == "" && !errors.Is(err, io.EOF):
		return oneLine(err), classUnreachable, guessHost
	case begins("-") && !begins("-NOAUTH"):
		return addr + " says: " + sentence(heard[1:]), classifyAnswer(heard[1:]), ""
	case t.tls != nil && (begins("+") || begins("-")):
		return addr + " does not speak TLS: the URL must begin with redis", classPermanent, ""
	case begins("HTTP/"):
		return addr + " speaks HTTP: it is no Redis", classPermanent, ""
	case t.tls == nil && !begins("+") && !begins("-") && t.speaksTLS(ctx, addr):
		return addr + " speaks TLS: the URL must begin with rediss", classPermanent, ""
	case begins("+"), begins("-"):
		return "", classUnknown, guessTLS
	case err != nil && t.tls != nil && t.speaksTLS(ctx, addr): // it may be what the server does without our certificate
		return addr + " closes the connection over TLS", classUnknown, guessCert
	case err != nil:
		return addr + " closes the connection", classUnknown, guessTLS
	}
	return addr + " does not answer", classUnknown, guessTLS
}

// hear connects, sends text, and returns what comes first, "" where nothing comes for a step. io.EOF: the server has
// closed, or reset, the connection.
func (t target) hear(ctx context.Context, addr string, secure *tls.Config, text string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, t.network, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	end := time.Now().Add(diagnoseStep)
	if last, has := ctx.Deadline(); has && last.Before(end) {
		end = last
	}
	_ = conn.SetDeadline(end)
	if secure != nil {
		conn = tls.Client(conn, named(secure, addr))
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return "", io.EOF
	}
	room := make([]byte, 4096)
	n, err := conn.Read(room)
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		return "", nil
	}
	if err != nil {
		err = io.EOF
	}
	return string(room[:n]), err
}

// isSentinel asks the server what it is.
func (t target) isSentinel(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	heard, _ := t.hear(ctx, t.addrs[0], t.tls, "ROLE\r\n")
	return strings.Contains(heard, "\r\nsentinel\r\n")
}

// speaksTLS reports whether the server shakes hands over TLS, whatever certificate it has.
func (t target) speaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, diagnoseStep)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // nothing is sent
	conn, err := d.DialContext(ctx, t.network, addr)
	if err == nil {
		_ = conn.Close()
	}
	_, alert := errors.AsType[tls.AlertError](err)
	return err == nil || alert
}

// named returns c for the server at addr.
func named(c *tls.Config, addr string) *tls.Config {
	c = c.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil && c.ServerName == "" {
		c.ServerName = host
	}
	return c
}

// mostSaid bounds what is shown of a server's words.
const mostSaid = 200

// sentence returns the first sentence of what a server says, in one line.
func sentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text, _, _ = strings.Cut(text, ". ")
	text = strings.TrimRight(text, ".\r ")
	if len(text) > mostSaid {
		text = text[:mostSaid] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// oneLine returns the text of err, of which go-redis makes one line for each Sentinel.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), sentinelsUnreachable)
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "; ")
}
