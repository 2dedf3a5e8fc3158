package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
)

func main() {
	// go-redis would write a line to standard error for each broken connection; the commands report what matters of
	// that.
	logging.Disable()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// rootCommand returns the root command with all subcommands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "anteroom COMMAND",
		Short: "The tool of the Anteroom lock library",
		Long: `Locks that many processes share through Redis. docs/cli.md is the manual.

` + redisHelp + `

A duration is a number of seconds or has units: 90, 2.5s, 1m30s.

` + statusHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	addRedisFlags(root)
	addVersionFlag(root)
	root.AddCommand(execCommand(), lockCommand(), listCommand(), statusCommand(), watchCommand(), releaseCommand(), doctorCommand())
	root.AddCommand(supervisorCommands()...)
	// Arguments are keys, durations and URLs, so do not complete file names.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	return root
}

// run carries out one command line and returns the exit status; exit.go has the list. It does not return if a signal
// ends this process.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	judge := began(root)
	cmd, err := root.ExecuteContextC(ctx)
	err = judge(cmd, err)
	code, say := status(err)
	if say {
		// The library's errors begin with its name, which here is the prefix of every error.
		text := strings.ReplaceAll("\n"+err.Error(), "\nanteroom ", "\nanteroom: ")[1:]
		last := newVoice(errs)
		last.say("%s", harmless(strings.TrimPrefix(text, "anteroom: ")))
		if why := diagnosis(cmd, code, err); why != "" && !strings.Contains(text, why) {
			last.say("%s", harmless(why))
		}
		last.close()
	}
	if e, ok := errors.AsType[*exitError](err); ok && e.die != nil {
		e.die()
	}
	return code
}
