package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
)

func main() {
	// Each connection that breaks would be a line of go-redis on standard error; what
	// matters of it the commands say themselves.
	logging.Disable()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// rootCommand returns the command with all of its commands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "anteroom",
		Short: "The tool of the Anteroom lock library",
		Long: `The tool of the Anteroom lock library: locks that many processes share through Redis.

Redis is named by --redis or by the environment variable ANTEROOM_REDIS. The exit
status is 64 for a wrong command line and 69 if Redis does not answer; the help of each
command has the others. docs/cli.md is the manual.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	addRedisFlag(root)
	root.AddCommand(execCommand(), statusCommand(), watchCommand(), releaseCommand())
	root.AddCommand(supervisorCommands()...)
	// Arguments are keys, durations and URLs: the names of files are no help.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	return root
}

// run carries out one command line and returns the exit status; exit.go has the list. It
// does not return where a signal has to end this process.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	judge := began(root)
	err := judge(root.ExecuteContext(ctx))
	code, say := status(err)
	if say {
		// The library's errors begin with its name, which here begins every error.
		text := strings.ReplaceAll("\n"+err.Error(), "\nanteroom ", "\nanteroom: ")[1:]
		fmt.Fprintln(errs, "anteroom:", harmless(strings.TrimPrefix(text, "anteroom: ")))
	}
	if e, ok := errors.AsType[*exitError](err); ok && e.die != nil {
		e.die()
	}
	return code
}
