package history

import (
	"net"
	"net/rpc"
	"sync"
)

// ServeRegister serves r on a Unix socket at path until the returned function is called.
func ServeRegister(r *Register, path string) (stop func(), err error) {
	server := rpc.NewServer()
	if err := server.RegisterName("Register", r); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			wg.Go(func() {
				server.ServeConn(conn)
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	})
	return func() {
		_ = listener.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		wg.Wait()
	}, nil
}

// registerClient is a register in another process. Without an answer nothing counts as read or accepted: the run is
// over then.
type registerClient struct{ c *rpc.Client }

func dialRegister(path string) (*registerClient, error) {
	c, err := rpc.Dial("unix", path)
	return &registerClient{c}, err
}

func (r *registerClient) read(a ReadArgs) (reply ReadReply) {
	_ = r.c.Call("Register.Read", a, &reply)
	return reply
}

func (r *registerClient) write(a WriteArgs) (accepted bool) {
	_ = r.c.Call("Register.Write", a, &accepted)
	return accepted
}
