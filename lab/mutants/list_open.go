package main

// openMutants are about getting a Manager, asking whether it works, and the names it takes.
var openMutants = []mutant{
	{
		name: "sync-reserved-keys", file: "lettuce_compat/dialect.go", pkg: "sync",
		mechanism: "a key below the prefix of the fencing records is a mistake",
		breaks:    "Lock of such a key waits for ever, and a lock can stand where tokens are",
		old:       "if strings.HasPrefix(key, prefix) {",
		fresh:     "if strings.HasPrefix(key, prefix) && false {",
		tests:     []string{"TestReservedKeys"},
	},
	{
		name: "sync-reserved-no-more", file: "lettuce_compat/dialect.go", pkg: "sync",
		mechanism: "only what begins with the prefix is reserved",
		breaks:    "a key that meets none of ours is refused",
		old:       "if strings.HasPrefix(key, prefix) {",
		fresh:     "if strings.Contains(key, prefix) {",
		tests:     []string{"TestReservedKeys_NoMore"},
	},
	{
		name: "sync-late-release-has-a-client", file: "sync/open.go",
		mechanism: "Close leaves the client of Open open while a lease is left",
		breaks:    "a late release after Close is never sent",
		old:       "	if left <= 0 {\n",
		fresh:     "	if left != 0 {\n",
		tests:     []string{"TestOpen_CloseWithALockStillHeld"},
	},
	{
		name: "sync-client-is-closed", file: "sync/close.go",
		mechanism: "Close closes the client of Open",
		breaks:    "each Manager leaves its connections behind",
		old:       "	m.closeClient()\n",
		fresh:     "",
		tests:     []string{"TestOpen_OneServer"},
	},
	{
		name: "wire-url-secrets", file: "lettuce_compat/open.go", pkg: "lettuce_compat",
		mechanism: "an error about a URL repeats no part of it that may be a password",
		breaks:    "passwords stand in logs",
		old:       "withoutSecrets(text, err)",
		fresh:     "err",
		tests:     []string{"TestOpen_ErrorsWithoutPasswords"},
	},
	{
		name: "wire-certificate-is-read-again", file: "lettuce_compat/url.go", pkg: "sync",
		mechanism: "the client's certificate is read for each connection",
		breaks:    "a program that runs for longer than its certificate loses Redis",
		old:       "	if _, err := load(nil); err != nil {\n",
		fresh:     "	once, err := load(nil)\n	load = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return once, nil }\n	if err != nil {\n",
		tests:     []string{"TestOpen_ACertificateIsRenewed"},
	},
	{
		name: "script-rehearse-second-step", file: "lettuce_compat/probe.go", pkg: "sync",
		mechanism: "Ping really takes a free lock, in a script that has written nothing before",
		breaks:    "Ping says that all is well while the memory is full",
		old:       "[]string{\"1\", \"2\"}",
		fresh:     "[]string{\"1\"}",
		tests:     []string{"TestPing_WhatTheServerCannotDoNow"},
	},
}
