package fence_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/fence"
)

func ExampleRedis() {
	server, err := miniredis.Run() // in memory; a real one in a program
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()

	ctx := context.Background()
	write := func(state string, token int64) error {
		err := fence.Redis{Client: rdb}.Set(ctx, "state:42", state, time.Hour, token)
		return err
	}
	fmt.Println(write("paid", 8))
	err = write("open", 7) // of a holder that was stopped for longer than its lease
	fmt.Println(errors.Is(err, fence.ErrStale), rdb.Get(ctx, "state:42").Val())
	// Output:
	// <nil>
	// true paid
}
