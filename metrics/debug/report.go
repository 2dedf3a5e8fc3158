package debug

import "time"

// Report is the content of the page, as ?format=json returns it. Times are RFC 3339 in UTC, durations seconds.
// Strings of the program are verbatim if all of them is printable, and otherwise quoted as in Go. Fields may be
// added; none changes its meaning.
type Report struct {
	At time.Time `json:"at"`
	// KeysHidden is Config.HideKeys.
	KeysHidden bool `json:"keys_hidden"`
	// Held and Waiting are the totals of all Managers, regardless of the filter.
	Held    int `json:"held"`
	Waiting int `json:"waiting"`
	// Managers are the attached ones, in the order of Attach.
	Managers         []Manager `json:"managers"`
	ManagersNotShown int       `json:"managers_not_shown"`
	// Classes are sorted by waiting, then held; the filter does not apply to them.
	Classes         []Class `json:"classes"`
	ClassesNotShown int     `json:"classes_not_shown"`
	// Keys is the number of live keys that match the filter. Locks are the first of them: lost or unhealthy ones,
	// then the longest waits, then the oldest grants.
	Keys          int    `json:"keys"`
	Locks         []Lock `json:"locks"`
	LocksNotShown int    `json:"locks_not_shown"`
	// Lost are the losses of the last minute that match the filter, newest first. The page keeps the last Config.Events of
	// all losses.
	Lost         []Event `json:"lost"`
	LostNotShown int     `json:"lost_not_shown"`
	// Events are the newest kept ones that match the filter; EventsSeen counts all events so far.
	Events         []Event `json:"events"`
	EventsNotShown int     `json:"events_not_shown"`
	EventsSeen     int64   `json:"events_seen"`
}

// Manager is one attached Manager.
type Manager struct {
	ClientID string `json:"client_id"`
	Held     int    `json:"held"`
	Waiting  int    `json:"waiting"`
	// CallSitesRecorded is anteroom.Config.RecordCallSites.
	CallSitesRecorded bool `json:"call_sites_recorded"`
	Closed            bool `json:"closed"`
	// Checks are the watchdog's last verdicts about the process as a whole.
	Checks []Check `json:"checks"`
}

// Class is the totals of the locks of one LockConfig.Name.
type Class struct {
	Class   string `json:"class"`
	Held    int    `json:"held"`
	Waiting int    `json:"waiting"`
	// The ages of the oldest hold and of the longest wait, 0 if there is none.
	OldestHoldSeconds float64 `json:"oldest_hold_seconds"`
	OldestWaitSeconds float64 `json:"oldest_wait_seconds"`

	filter string // the value of the parameter class that finds it
}

// Name is how a key is shown.
type Name struct {
	// Key is the key, or its first 256 bytes; "" if keys are hidden. KeyQuoted reports that it is quoted as in Go.
	Key       string `json:"key"`
	KeyQuoted bool   `json:"key_quoted"`
	KeyBytes  int    `json:"key_bytes"`
	// KeyHash is key_hash in the log.
	KeyHash string `json:"key_hash"`
}

// Lock is one live key of one Manager.
type Lock struct {
	Name
	Manager string `json:"manager"`
	Class   string `json:"class"`
	// Status is "free", "acquiring", "granted", "owned", "lingers", "releasing" or "lost".
	Status string `json:"status"`
	Lost   bool   `json:"lost"`
	// Owner is null if no goroutine of this process owns the lock, Lease if Redis has not granted it to this process.
	Owner *Owner `json:"owner"`
	Lease *Lease `json:"lease"`
	// HeldBy is the field under which another process held the key when Redis answered this one last.
	HeldBy string `json:"held_by"`
	// Ahead is how many places in line are before that of this process, at most; null if it is not in line.
	Ahead *int `json:"ahead"`
	// Units is null of a Mutex.
	Units *Units `json:"units"`
	// Waiting is the number of waiters in this process, Waiters the first of them in order.
	Waiting         int      `json:"waiting"`
	Waiters         []Waiter `json:"waiters"`
	WaitersNotShown int      `json:"waiters_not_shown"`
	// Checks are the watchdog's last verdicts about this hold.
	Checks []Check `json:"checks"`

	filter string // the value of the parameter key that finds it
}

// Units is what an RWMutex or a Semaphore has more: how many units this process has, how many of them those inside need, how
// many there are in all, and how many read.
type Units struct {
	Has      int64 `json:"has"`
	Used     int64 `json:"used"`
	Capacity int64 `json:"capacity"`
	Readers  int64 `json:"readers"`
}

// Owner describes the owner of a lock.
type Owner struct {
	// Goroutine is the one that acquired it, Kind how: "lock", "try_lock", "hold" or "try"; the last two may be
	// released by any goroutine.
	Goroutine int64     `json:"goroutine"`
	Kind      string    `json:"kind"`
	CallSite  string    `json:"call_site"`
	Since     time.Time `json:"since"`
	// HeldSeconds is the time since then, Count the number of units (reentrancy).
	HeldSeconds float64 `json:"held_seconds"`
	Count       int     `json:"count"`
	// Token is the fencing token, 0 without Fencing.
	Token int64 `json:"token"`
}

// Lease is Redis' grant to this process.
type Lease struct {
	Holder  string    `json:"holder"` // the field in Redis
	Granted time.Time `json:"granted"`
	// LengthSeconds is the full length of the lease. LeftSeconds is how long the lock can be relied on without a
	// further renewal, up to Deadline; negative after it.
	LengthSeconds float64   `json:"length_seconds"`
	LeftSeconds   float64   `json:"left_seconds"`
	Deadline      time.Time `json:"deadline"`
	// NextRenewal is null for a lease that is not renewed; NextRenewalSeconds is the time until then, negative if
	// overdue.
	NextRenewal        *time.Time `json:"next_renewal"`
	NextRenewalSeconds *float64   `json:"next_renewal_seconds"`
	// HandOffs counts hand-offs within the process since the grant or the turn's extension.
	HandOffs int `json:"hand_offs"`
}

// Waiter is one waiting caller.
type Waiter struct {
	Goroutine      int64   `json:"goroutine"`
	Kind           string  `json:"kind"` // as Owner.Kind
	WaitingSeconds float64 `json:"waiting_seconds"`
	CallSite       string  `json:"call_site"`
	// Mode is "read" or "write" of an RWMutex, Units how many it waits for of that or a Semaphore.
	Mode  string `json:"mode"`
	Units int64  `json:"units"`
}

// Check is one verdict of the watchdog.
type Check struct {
	Check      string    `json:"check"`
	Health     string    `json:"health"` // "healthy", "unhealthy" or "unknown"
	Finding    string    `json:"finding"`
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
	AgoSeconds float64   `json:"ago_seconds"`
}

// Event is one observe.Event.
type Event struct {
	At         time.Time `json:"at"`
	AgoSeconds float64   `json:"ago_seconds"`
	Kind       string    `json:"kind"`
	Manager    string    `json:"manager"`
	Name
	Class    string     `json:"class"`
	Holder   string     `json:"holder"`
	Reason   string     `json:"reason"`
	Since    *time.Time `json:"since"`
	Owners   int        `json:"owners"`
	Check    string     `json:"check"`
	Text     string     `json:"text"`
	Error    string     `json:"error"`
	CallSite string     `json:"call_site"`

	filter string // the value of the parameter key that finds it
}
