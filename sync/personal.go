package anteroom

// KeyHash returns the short hash of a key that log records carry as key_hash, so that
// what is shown elsewhere can be compared with the log. It tells the keys of a program
// apart; who guesses a key can see that the guess is right.
func KeyHash(key string) string { return keyHash(key) }

// WithoutKey returns the Text of e and what its Err says as log records carry them without
// Config.LogKeys. The library's own words name nobody and stay as they are, whatever the
// key is called; from what others said, such as a server's answer, the names of key, holder
// and Manager are taken out, and the arguments that a server repeats.
func (e Event) WithoutKey() (text, err string) {
	q := eventQueue{clientID: e.ClientID}
	if e.Err != nil {
		err = q.words(&e, false).of(e.Err)
	}
	return q.text(&e), err
}

// WithoutKey returns what Err says, as WithoutKey of an Event does, without the name of key.
func (v VerdictState) WithoutKey(key string) string {
	if v.Err == nil {
		return ""
	}
	e := Event{Key: key, Err: v.Err}
	_, err := e.WithoutKey()
	return err
}
