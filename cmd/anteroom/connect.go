package main

import (
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// redisVariable is the environment variable that stands in for --redis. Unlike a flag it
// is not shown to every user of the machine by ps.
const redisVariable = "ANTEROOM_REDIS"

// defaultRedis is where Redis is if nobody says.
const defaultRedis = "redis://127.0.0.1:6379"

// redisHelp describes the forms of the URL, for the long help of the commands that use it.
var redisHelp = `Redis is named by --redis or, better for a URL with a password because ps shows
arguments, by the environment variable ANTEROOM_REDIS. The flag wins. The forms are

  ` + strings.ReplaceAll(lettucecompat.URLForms, "\n", "\n  ") + `

User and password are those of the Redis servers; the Sentinels' own ones are the
options sentinel_username and sentinel_password. Characters such as / ? # @ in a
password are written as %2F %3F %23 %40. Options follow a question mark, for example
?dial_timeout=2s&read_timeout=500ms. With TLS ca_file names the authorities to trust,
cert_file and key_file the own certificate, all in PEM form, and skip_verify=true trusts
every server.`

// addRedisFlag gives root and all of its commands the flag --redis.
func addRedisFlag(root *cobra.Command) {
	root.PersistentFlags().String("redis", "",
		"URL of the Redis; default $"+redisVariable+", or "+defaultRedis)
}

// connect returns a client of the Redis that the command line or the environment names. It
// does not ask Redis anything. The caller closes the client. An error is one of usage, and
// never holds a part of the URL that may be a password.
func connect(cmd *cobra.Command) (redis.UniversalClient, error) {
	from := "--redis"
	text, err := cmd.Flags().GetString("redis")
	if err != nil {
		return nil, err
	}
	if text == "" {
		from, text = redisVariable, os.Getenv(redisVariable)
	}
	if text == "" {
		text = defaultRedis
	}
	client, err := lettucecompat.Open(text, lettucecompat.Options{})
	if err != nil {
		return nil, usageError("%s: %w", from, err)
	}
	return client, nil
}
