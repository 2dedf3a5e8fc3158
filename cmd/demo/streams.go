package main

import "io"

// frame is a piece of one of the two streams between a child and its parent. They have one pipe in each direction, and
// net/rpc lets only one side of a stream call the other.
type frame struct {
	Orders bool // of the stream in which the parent calls; in the other one the child does
	Data   []byte
}

// stream is one side's end of a stream. Write is safe for concurrent use.
type stream struct {
	*io.PipeReader // what has arrived
	orders         bool
	send           func(v any) error
}

func (s stream) Write(p []byte) (int, error) {
	if err := s.send(frame{s.orders, p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// streams returns our ends of both streams. They end when receive fails, which is when the other side is gone. What
// arrives must be read immediately, as net/rpc does: a stream that is not read holds up the other one.
func streams(send, receive func(v any) error) (orders, calls stream) {
	orderReader, orderWriter := io.Pipe()
	callReader, callWriter := io.Pipe()
	go func() {
		defer orderWriter.Close()
		defer callWriter.Close()
		for {
			var f frame
			if receive(&f) != nil {
				return
			}
			to := callWriter
			if f.Orders {
				to = orderWriter
			}
			_, _ = to.Write(f.Data) // an error: nobody reads any more
		}
	}()
	return stream{orderReader, true, send}, stream{callReader, false, send}
}
