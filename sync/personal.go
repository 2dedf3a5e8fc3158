package anteroom

// KeyHash returns the short hash of a key that log records carry as key_hash, so that
// what is shown elsewhere can be compared with the log. It tells the keys of a program
// apart; who guesses a key can see that the guess is right.
func KeyHash(key string) string { return keyHash(key) }

// WithoutKey returns a text of an Event, an error or a VerdictState as log records carry
// it without Config.LogKeys: the key is taken out, and what a server has repeated of the
// arguments that it was sent.
func WithoutKey(text, key string) string { return without(withoutEcho(text), key) }
