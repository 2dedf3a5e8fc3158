package faults_test

// expectRelease is what each fault does to the operation of that name.
var expectRelease = map[string]expectation{
	"reply lost": {"the rival's lock", []want{
		{"Release", "nil", "2C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"reply late": {"the rival's lock", []want{
		{"Release", "nil", "2C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"connection reset": {"the rival's lock", []want{
		{"Release", "nil", "2C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"half-open connection": {"the rival's lock", []want{
		{"Release", "nil", "2C"},
		{"rival's Acquire", "nil", "2C + B"},
	}},
	"200 ms latency with jitter": {"the rival's lock", []want{
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"Redis SIGSTOP": {"the rival's lock", []want{
		{"Release", "ErrUnknown, released in background", "2C"},
		{"rival's Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, memory empty": {"the rival's lock", []want{
		{"Release", "ErrLost or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"rival's Acquire", "nil", "D + L + B + C"},
	}},
	"Redis SIGKILL, AOF": {"the rival's lock", []want{
		{"Release", "nil or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"rival's Acquire", "nil", "D + L + B + C"},
	}},
	"FLUSHALL": {"the rival's lock", []want{
		{"Release", "ErrLost", "C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"key deleted": {"the rival's lock", []want{
		{"Release", "ErrLost", "C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"key overwritten": {"nothing", []want{
		{"Release", "ErrLost", "C"},
		{"rival's Acquire", "ErrConfig", "L + C"},
	}},
	"script cache flushed": {"the rival's lock", []want{
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"pub/sub connection killed": {"the rival's lock", []want{
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"CLIENT PAUSE": {"the rival's lock", []want{
		{"Release", "nil", "2C"},
		{"rival's Acquire", "nil", "D + B + C + C"},
	}},
	"out of memory": {"the rival's lock", []want{
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "D + B + C"},
	}},
	"READONLY": {"the rival's lock", []want{
		{"Release", "nil or ErrUnavailable, released in background", "2C"},
		{"rival's Acquire", "nil", "D + B + C"},
	}},
	"ACL change": {"the rival's lock", []want{
		{"Release", "ErrUnavailable, released in background", "2C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"holder SIGSTOP": {"the rival's lock", []want{
		{"Release", "ErrLost", "D + C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"starved CPU": {"the rival's lock", []want{
		{"Release", "nil", "D + C"},
		{"rival's Acquire", "nil", "D + 2C"},
	}},
	"long GC pause": {"the rival's lock", []want{
		{"Release", "ErrLost", "D + C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
}
