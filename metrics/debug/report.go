package debug

import "time"

// Report is what the page shows, as ?format=json answers it. Times are RFC 3339 in UTC,
// durations seconds. Strings that come from the program are as they are where they print,
// and as Go quotes them otherwise. Fields may be added; none changes its meaning.
type Report struct {
	At time.Time `json:"at"`
	// KeysHidden is Config.HideKeys.
	KeysHidden bool `json:"keys_hidden"`
	// Held and Waiting are the sums of all Managers, whatever the filter.
	Held    int `json:"held"`
	Waiting int `json:"waiting"`
	// Managers are those attached, in the order in which they were.
	Managers         []Manager `json:"managers"`
	ManagersNotShown int       `json:"managers_not_shown"`
	// Classes are ordered by waiting, then held; the filter does not apply to them.
	Classes         []Class `json:"classes"`
	ClassesNotShown int     `json:"classes_not_shown"`
	// Keys is how many live keys the filter finds. Locks are the first of them: lost or
	// unhealthy ones, then the longest waits, then what Redis granted the longest ago.
	Keys          int    `json:"keys"`
	Locks         []Lock `json:"locks"`
	LocksNotShown int    `json:"locks_not_shown"`
	// Events are the newest that the filter finds among those that are kept, EventsSeen
	// how many there have been in all.
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

// Class sums up the locks of one LockConfig.Name.
type Class struct {
	Class   string `json:"class"`
	Held    int    `json:"held"`
	Waiting int    `json:"waiting"`
	// The ages of the oldest hold and of the longest wait, 0 without one.
	OldestHoldSeconds float64 `json:"oldest_hold_seconds"`
	OldestWaitSeconds float64 `json:"oldest_wait_seconds"`

	filter string // the value of the parameter class that finds it
}

// Name is how a key is called.
type Name struct {
	// Key is the key, or its first 256 bytes; "" where keys are hidden. KeyQuoted tells
	// that it stands there as Go quotes it.
	Key       string `json:"key"`
	KeyQuoted bool   `json:"key_quoted"`
	KeyBytes  int    `json:"key_bytes"`
	// KeyHash is key_hash of the log.
	KeyHash string `json:"key_hash"`
}

// Lock is one live key of one Manager.
type Lock struct {
	Name
	Manager string `json:"manager"`
	Class   string `json:"class"`
	// Status is "free", "acquiring", "granted", "owned", "releasing" or "lost".
	Status string `json:"status"`
	Lost   bool   `json:"lost"`
	// Owner is null where nobody of this process owns the lock, Lease where Redis has not
	// granted it to this process.
	Owner *Owner `json:"owner"`
	Lease *Lease `json:"lease"`
	// HeldBy is the field with which another process held the key when this one was
	// refused last.
	HeldBy string `json:"held_by"`
	// Waiting is how many wait in this process, Waiters the first of them in order.
	Waiting         int      `json:"waiting"`
	Waiters         []Waiter `json:"waiters"`
	WaitersNotShown int      `json:"waiters_not_shown"`
	// Checks are the watchdog's last verdicts about this hold.
	Checks []Check `json:"checks"`

	filter string // the value of the parameter key that finds it
}

// Owner is who owns a lock.
type Owner struct {
	// Goroutine acquired it. Kind is how: "lock", "try_lock", "hold" or "try"; the last two
	// may be released by any goroutine.
	Goroutine int64     `json:"goroutine"`
	Kind      string    `json:"kind"`
	CallSite  string    `json:"call_site"`
	Since     time.Time `json:"since"`
	// HeldSeconds is the time since then, Count how often it is held (reentrancy).
	HeldSeconds float64 `json:"held_seconds"`
	Count       int     `json:"count"`
	// Token is the fencing token, 0 without Fencing.
	Token int64 `json:"token"`
}

// Lease is the grant of Redis to this process.
type Lease struct {
	Holder  string    `json:"holder"` // the field in Redis
	Granted time.Time `json:"granted"`
	// LengthSeconds is how long the lease was made. LeftSeconds is how long the lock can
	// be relied on without a further renewal, up to Deadline; negative after it.
	LengthSeconds float64   `json:"length_seconds"`
	LeftSeconds   float64   `json:"left_seconds"`
	Deadline      time.Time `json:"deadline"`
	// NextRenewal is null for a lease that is not renewed; NextRenewalSeconds is how long
	// it is until then, negative where it is due.
	NextRenewal        *time.Time `json:"next_renewal"`
	NextRenewalSeconds *float64   `json:"next_renewal_seconds"`
	// HandOffs counts those within the process since the grant or the turn's extension.
	HandOffs int `json:"hand_offs"`
}

// Waiter is one caller that waits.
type Waiter struct {
	Goroutine      int64   `json:"goroutine"`
	Kind           string  `json:"kind"` // as Owner.Kind
	WaitingSeconds float64 `json:"waiting_seconds"`
	CallSite       string  `json:"call_site"`
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

// Event is one anteroom.Event.
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
