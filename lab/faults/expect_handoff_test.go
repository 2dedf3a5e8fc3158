package faults_test

// expectHandOff is what each fault does to the operation of that name.
var expectHandOff = map[string]expectation{
	"reply lost": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "2C"},
		{"C's Acquire", "nil", "2C + B"},
	}},
	"reply late": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "2C"},
		{"C's Acquire", "nil", "2C + B"},
	}},
	"connection reset": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "2C"},
		{"C's Acquire", "nil", "2C + B"},
	}},
	"half-open connection": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "2C"},
		{"C's Acquire", "nil", "2C + B"},
	}},
	"200 ms latency with jitter": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "C"},
		{"C's Acquire", "nil", "2C"},
	}},
	"Redis SIGSTOP": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "ErrUnknown, released in background", "2C"},
		{"C's Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, memory empty": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "ErrLost or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"C's Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, AOF": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"C's Acquire", "nil", "D + B + C"},
	}},
	"FLUSHALL": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "ErrLost", "C"},
		{"C's Acquire", "nil", "2C + B"},
	}},
	"key deleted": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "ErrLost", "C"},
		{"C's Acquire", "nil", "2C + B"},
	}},
	"key overwritten": {"nothing", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "ErrLost", "C"},
		{"C's Acquire", "ErrConfig", "2C + B"},
	}},
	"script cache flushed": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "C"},
		{"C's Acquire", "nil", "2C"},
	}},
	"pub/sub connection killed": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "C"},
		{"C's Acquire", "nil", "2C"},
	}},
	"CLIENT PAUSE": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "2C"},
		{"C's Acquire", "nil", "D + B + C"},
	}},
	"out of memory": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil", "C"},
		{"C's Acquire", "nil", "2C"},
	}},
	"READONLY": {"the victim's lock", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "nil or ErrUnavailable, released in background", "2C"},
		{"C's Acquire", "nil", "D + B + C"},
	}},
	"ACL change": {"nothing", []want{
		{"A's Release", "nil", "at once"},
		{"B's Acquire", "nil", "at once"},
		{"B's Release", "ErrUnavailable, released in background", "2C"},
		{"C's Acquire", "ErrConfig", "2C"},
	}},
	"holder SIGSTOP": {"the victim's lock", []want{
		{"A's Release", "ErrLost", "D + C"},
		{"B's Acquire", "nil", "D + B + C"},
		{"B's Release", "nil", "D + B + 2C"},
		{"C's Acquire", "nil", "D + B + 2C"},
	}},
	"starved CPU": {"the victim's lock", []want{
		{"A's Release", "nil", "D"},
		{"B's Acquire", "nil", "D"},
		{"B's Release", "nil", "D + C"},
		{"C's Acquire", "nil", "D + B + C"},
	}},
	"long GC pause": {"the victim's lock", []want{
		{"A's Release", "ErrLost", "D + C"},
		{"B's Acquire", "nil", "D + B + C"},
		{"B's Release", "nil", "D + B + 2C"},
		{"C's Acquire", "nil", "D + B + 2C"},
	}},
}
