package main

import (
	"cmp"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// redisVariable is the environment variable used if --redis is not given. Unlike a flag, ps does not show it to every
// user of the machine.
const redisVariable = "ANTEROOM_REDIS"

// defaultRedis is the URL used if neither is given.
const defaultRedis = "redis://127.0.0.1:6379"

// redisHelp describes the forms of the URL, for the help of root.
var redisHelp = `--redis names the Redis, or the variable ANTEROOM_REDIS, which is safer for a URL with a
password: ps shows arguments. Without both it is redis://127.0.0.1:6379. Forms:

  ` + strings.ReplaceAll(lettucecompat.URLForms, "\n", "\n  ") + `

In a password write / ? # @ as %2F %3F %23 %40. go-redis options follow a question mark:
?dial_timeout=2s&read_timeout=500ms. Sentinels have a user of their own (sentinel_username,
sentinel_password). With TLS, skip_verify=true accepts any server.`

// tlsFlags are the flags that name files in PEM form, by the option of the URL that they set.
var tlsFlags = []struct{ flag, variable, option, usage string }{
	{"cacert", "ANTEROOM_TLS_CACERT", "ca_file", "`FILE` of trusted authorities (default $ANTEROOM_TLS_CACERT, or the system's)"},
	{"cert", "ANTEROOM_TLS_CERT", "cert_file", "`FILE` of the client's certificate (default $ANTEROOM_TLS_CERT)"},
	{"key", "ANTEROOM_TLS_KEY", "key_file", "`FILE` of its private key (default $ANTEROOM_TLS_KEY)"},
}

// addRedisFlags adds the flags --redis, --dialect and those of TLS to root and all of its commands.
func addRedisFlags(root *cobra.Command) {
	root.PersistentFlags().String("redis", "",
		"`URL` of the Redis, see anteroom --help (default $"+redisVariable+")")
	root.PersistentFlags().String("dialect", lettucecompat.DesignDocument.String(),
		"`FORM` of locks: document, redisson, redisson-unsharded")
	for _, f := range tlsFlags {
		root.PersistentFlags().String(f.flag, "", f.usage)
	}
}

// withTLSFiles adds the files that the command line or the environment names to a URL. They come before options of the
// same name in the URL, because the first one counts.
func withTLSFiles(cmd *cobra.Command, text string) (string, error) {
	var options []string
	for _, f := range tlsFlags {
		file, err := cmd.Flags().GetString(f.flag)
		if err != nil {
			return "", err
		}
		if file == "" && strings.HasPrefix(text, "rediss") { // the variables are for all commands, and so for URLs without TLS, too
			file = os.Getenv(f.variable)
		}
		if file != "" {
			options = append(options, f.option+"="+url.QueryEscape(file))
		}
	}
	if len(options) == 0 {
		return text, nil
	}
	base, present, more := strings.Cut(text, "?")
	if more {
		options = append(options, present)
	}
	return base + "?" + strings.Join(options, "&"), nil
}

// dialect returns the dialect that the command line names.
func dialect(cmd *cobra.Command) (lettucecompat.Dialect, error) {
	name, err := cmd.Flags().GetString("dialect")
	for d := lettucecompat.DesignDocument; err == nil && d.Valid(); d++ {
		if d.String() == name {
			return d, nil
		}
	}
	return 0, cmp.Or(err, usageError("--dialect is %q; it must be document, redisson or redisson-unsharded", name))
}

// address returns the URL that the command line or the environment gives, and which of the two.
func address(cmd *cobra.Command) (text, from string, err error) {
	from = "--redis"
	if text, err = cmd.Flags().GetString("redis"); err != nil {
		return "", "", err
	}
	if text == "" {
		from, text = redisVariable, os.Getenv(redisVariable)
	}
	if text == "" {
		text = defaultRedis
	}
	text, err = withTLSFiles(cmd, text)
	return text, from, err
}

// connect returns a client of the Redis that the command line or the environment names. It sends nothing to Redis.
// The caller closes the client. Errors are usage errors, and never contain a part of the URL that may be a password.
func connect(cmd *cobra.Command) (redis.UniversalClient, error) {
	text, from, err := address(cmd)
	if err != nil {
		return nil, err
	}
	timeout, _ := cmd.Flags().GetDuration("timeout") // 0 for a command without it
	client, err := lettucecompat.Open(text, lettucecompat.Options{CommandTimeout: cmp.Or(timeout, commandTimeout)})
	if err != nil {
		return nil, usageError("%s: %w", from, err)
	}
	return client, nil
}
