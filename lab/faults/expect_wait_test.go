package faults_test

// expectWait is what each fault does to the operation of that name.
var expectWait = map[string]expectation{
	"reply lost": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "C + B"},
	}},
	"reply late": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "2C + B"},
	}},
	"connection reset": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "C + B"},
	}},
	"half-open connection": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "L + 2C + B"},
	}},
	"200 ms latency with jitter": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "2C"},
	}},
	"Redis SIGSTOP": {"the victim's lock", []want{
		{"holder's Release", "ErrUnknown, released in background", "2C"},
		{"waiter's Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, memory empty": {"the victim's lock", []want{
		{"holder's Release", "ErrLost or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"waiter's Acquire", "nil", "D + L + B + C"},
	}},
	"Redis SIGKILL, AOF": {"the victim's lock", []want{
		{"holder's Release", "nil or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"waiter's Acquire", "nil", "D + L + B + C"},
	}},
	"FLUSHALL": {"the victim's lock", []want{
		{"holder's Release", "ErrLost", "C"},
		{"waiter's Acquire", "nil", "L + C"},
	}},
	"key deleted": {"the victim's lock", []want{
		{"holder's Release", "ErrLost", "C"},
		{"waiter's Acquire", "nil", "L + C"},
	}},
	"key overwritten": {"nothing", []want{
		{"holder's Release", "ErrLost", "C"},
		{"waiter's Acquire", "ErrConfig", "L + C"},
	}},
	"script cache flushed": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "2C"},
	}},
	"pub/sub connection killed": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "L + C"},
	}},
	"CLIENT PAUSE": {"the victim's lock", []want{
		{"holder's Release", "nil", "2C"},
		{"waiter's Acquire", "nil", "D + B + C"},
	}},
	"out of memory": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "D + B + C"},
	}},
	"READONLY": {"the victim's lock", []want{
		{"holder's Release", "nil or ErrUnavailable, released in background", "2C"},
		{"waiter's Acquire", "nil", "D + L + B + C"},
	}},
	// It is called, and enters without a command of its own. What it cannot renew it loses at its deadline.
	"ACL change": {"nothing", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "C"},
	}},
	"holder SIGSTOP": {"the rival's lock", []want{
		{"holder's Release", "ErrLost", "D + C"},
		{"waiter's Acquire", "nil", "L + C"},
	}},
	"starved CPU": {"the victim's lock", []want{
		{"holder's Release", "nil", "C"},
		{"waiter's Acquire", "nil", "D + B + C"},
	}},
	"long GC pause": {"the rival's lock", []want{
		{"holder's Release", "ErrLost", "D + C"},
		{"waiter's Acquire", "nil", "L + C"},
	}},
}
