package faults_test

// expectCall is what each fault does to the operation of that name.
var expectCall = map[string]expectation{
	"reply lost": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "C + B"},
		{"rival's next Acquire", "nil", "C + B + C"},
	}},
	"reply late": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "2C + B"},
		{"rival's next Acquire", "nil", "2C + B + C"},
	}},
	"connection reset": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "C + B"},
		{"rival's next Acquire", "nil", "C + B + C"},
	}},
	"half-open connection": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "L + 2C + B"},
		{"rival's next Acquire", "nil", "L + 2C + B + C"},
	}},
	"200 ms latency with jitter": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "2C"},
		{"rival's next Acquire", "nil", "2C"},
	}},
	"Redis SIGSTOP": {"nothing", []want{
		{"rival's Release", "ErrUnknown, released in background", "2C"},
		{"victim's Acquire", "nil", "D + B + C"},
		{"rival's next Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, memory empty": {"nothing", []want{
		{"rival's Release", "ErrLost or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"victim's Acquire", "nil", "D + L + B + C"},
		{"rival's next Acquire", "nil", "D + L + B + C"},
	}},
	"Redis SIGKILL, AOF": {"nothing", []want{
		{"rival's Release", "nil or ErrUnavailable, released in background or ErrUnknown, released in background", "2C"},
		{"victim's Acquire", "nil", "D + L + B + C"},
		{"rival's next Acquire", "nil", "D + L + B + C"},
	}},
	"FLUSHALL": {"nothing", []want{
		{"rival's Release", "ErrLost", "C"},
		{"victim's Acquire", "nil", "L + C"},
		{"rival's next Acquire", "nil", "L + C"},
	}},
	"key deleted": {"nothing", []want{
		{"rival's Release", "ErrLost", "C"},
		{"victim's Acquire", "nil", "L + C"},
		{"rival's next Acquire", "nil", "L + C"},
	}},
	"key overwritten": {"nothing", []want{
		{"rival's Release", "ErrLost", "C"},
		{"victim's Acquire", "ErrConfig", "L + C"},
		{"rival's next Acquire", "ErrConfig", "L + C"},
	}},
	"script cache flushed": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "2C"},
		{"rival's next Acquire", "nil", "2C"},
	}},
	"pub/sub connection killed": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "L + C"},
		{"rival's next Acquire", "nil", "L + C"},
	}},
	"CLIENT PAUSE": {"nothing", []want{
		{"rival's Release", "nil", "2C"},
		{"victim's Acquire", "nil", "D + B + C"},
		{"rival's next Acquire", "nil", "D + B + C"},
	}},
	"out of memory": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "D + B + C"},
		{"rival's next Acquire", "nil", "D + B + C"},
	}},
	"READONLY": {"nothing", []want{
		{"rival's Release", "nil or ErrUnavailable, released in background", "2C"},
		{"victim's Acquire", "nil", "D + L + B + C"},
		{"rival's next Acquire", "nil", "D + L + B + C"},
	}},
	"ACL change": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "C"},
		{"rival's next Acquire", "nil", "C"},
	}},
	"holder SIGSTOP": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "D + B + C"},
		{"rival's next Acquire", "nil", "L + C"},
	}},
	"starved CPU": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "D + B + C"},
		{"rival's next Acquire", "nil", "D + B + C"},
	}},
	"long GC pause": {"nothing", []want{
		{"rival's Release", "nil", "C"},
		{"victim's Acquire", "nil", "D + B + C"},
		{"rival's next Acquire", "nil", "L + C"},
	}},
}
