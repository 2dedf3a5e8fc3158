package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
)

func main() {
	// Every connection that a fault cuts would be a line of go-redis on standard error;
	// what matters of it is reported by the library under demonstration.
	logging.Disable()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// errFailed ends a command whose output has already said what failed.
var errFailed = errors.New("failed")

// run carries out one command line and returns the exit status; exit.go has the list.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := &cobra.Command{
		Use:           "anteroom",
		Short:         "The tool of the Anteroom lock library",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	addRedisFlag(root)
	root.AddCommand(demoCommand(), demoWorkerCommand())
	judge := began(root)
	err := judge(root.ExecuteContext(ctx))
	code, say := status(err)
	if say {
		fmt.Fprintln(errs, "anteroom:", err)
	}
	return code
}
