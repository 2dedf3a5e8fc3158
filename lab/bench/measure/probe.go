package measure

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// question requests everything in one round trip: the sections differ between versions, and INFO with a list of them
// does not exist before Redis 7.
const question = "INFO all\r\n"

// askWithin bounds a request to a server that others keep busy.
const askWithin = 10 * time.Second

// Probe queries a redis-server, on a connection of its own, for what it did for others. It is for one goroutine.
type Probe struct {
	conn net.Conn
	in   *bufio.Reader
	// sent and received count the bytes of the probe's own requests and answers.
	sent, received int64
	asked          int64
}

// NewProbe connects to the server at addr.
func NewProbe(addr string) (*Probe, error) {
	conn, err := net.DialTimeout("tcp", addr, askWithin)
	if err != nil {
		return nil, err
	}
	return &Probe{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Close ends the connection.
func (p *Probe) Close() error { return p.conn.Close() }

// Reading is what a server had done by one moment, without the probe's own part.
type Reading struct {
	Bytes    int64            // read and written
	Executed int64            // commands, including those called by scripts
	Calls    map[string]int64 // the same by name, in lower case, subcommands as "client|setinfo"
	CPU      time.Duration
	Clients  int64
}

// Read queries the server once.
func (p *Probe) Read() (Reading, error) {
	// The server's figures include the request when it answers, but not the answer.
	p.sent += int64(len(question))
	sent, received, asked := p.sent, p.received, p.asked
	text, err := p.ask()
	if err != nil {
		return Reading{}, fmt.Errorf("INFO: %w", err)
	}
	r := Reading{Calls: map[string]int64{}}
	value := map[string]string{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if verb, isCalls := strings.CutPrefix(name, "cmdstat_"); ok && isCalls {
			n, _, _ := strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
			r.Calls[verb], _ = strconv.ParseInt(n, 10, 64)
		} else if ok {
			value[name] = rest
		}
	}
	number := func(name string) float64 {
		v, e := strconv.ParseFloat(value[name], 64)
		if e != nil && err == nil {
			err = fmt.Errorf("INFO has no %s", name)
		}
		return v
	}
	r.Bytes = int64(number("total_net_input_bytes")) + int64(number("total_net_output_bytes")) - sent - received
	r.Executed = int64(number("total_commands_processed")) - asked
	r.CPU = time.Duration((number("used_cpu_user") + number("used_cpu_sys")) * float64(time.Second))
	r.Clients = int64(number("connected_clients")) - 1
	return r, err
}

// ask sends the request and returns the text of the answer.
func (p *Probe) ask() (string, error) {
	if err := p.conn.SetDeadline(time.Now().Add(askWithin)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(p.conn, question); err != nil {
		return "", err
	}
	head, err := p.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil {
		return "", fmt.Errorf("answered %q", head)
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(p.in, text); err != nil {
		return "", err
	}
	p.received += int64(len(head) + len(text))
	p.asked++
	return string(text), nil
}

// PerOp returns what the server did between two readings, per acquisition. sends are the commands that clients send
// themselves.
func (r Reading) PerOp(begin Reading, ops uint64, sends []string) Figures {
	if ops == 0 {
		return Figures{Connections: float64(r.Clients)}
	}
	sent := int64(0)
	for _, verb := range sends {
		sent += r.Calls[verb] - begin.Calls[verb]
	}
	n := float64(ops)
	return Figures{
		CommandsPerOp:   float64(sent) / n,
		ExecutedPerOp:   float64(r.Executed-begin.Executed) / n,
		BytesPerOp:      float64(r.Bytes-begin.Bytes) / n,
		RedisCPUUSPerOp: float64((r.CPU - begin.CPU).Nanoseconds()) / 1e3 / n,
		Connections:     float64(r.Clients),
	}
}
