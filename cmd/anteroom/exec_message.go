package main

import "time"

// supervisorCommand is the name of the hidden command that starts the supervisor.
const supervisorCommand = "exec-supervisor"

// anteroom exec and the supervisor exchange messages of these two kinds through pipes, as gob: arguments are
// arbitrary bytes, which JSON would change.

// superOrder is what the keeper of the lock sends to the supervisor. The end of the stream means that the keeper is
// gone.
type superOrder struct {
	Kind   orderKind
	Start  *launch       // orderStart
	Valid  time.Duration // orderStart, orderValid: for how long from now the lock is held
	Signal int           // orderSignal
}

type orderKind int

const (
	orderStart  orderKind = iota + 1 // the first one, once
	orderValid                       // the lock is held for another Valid
	orderLost                        // the lock is lost: end the command
	orderSignal                      // deliver Signal to the command's group
)

// launch describes the command.
type launch struct {
	Path       string
	Argv       []string
	Env        []string
	Grace      time.Duration // from TERM to KILL
	Slack      time.Duration // after the end of Valid, in which the keeper acts if it can
	Foreground bool          // the group gets the terminal
}

// superReport is what the supervisor sends to the keeper. The end of the stream without a reportEnded means that the
// supervisor is gone.
type superReport struct {
	Kind   reportKind
	Group  int  // reportStarted: the process group, which is the command's process id
	Errno  int  // reportFailed
	Signal int  // reportStopped; reportEnded: the signal that ended the command, 0 for none
	Status int  // reportEnded: as a shell reports it
	Lost   bool // reportEnded: the supervisor ended the command because of a loss
}

type reportKind int

const (
	reportStarted reportKind = iota + 1
	reportFailed             // the command did not start
	reportStopped            // Signal has stopped the command
	reportLeft               // the command has ended, others of its group have not
	reportEnded              // nothing of the group remains
)
