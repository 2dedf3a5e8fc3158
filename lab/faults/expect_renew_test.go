package faults_test

// expectRenew is what each fault does to the operation of that name.
var expectRenew = map[string]expectation{
	"reply lost": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"reply late": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"connection reset": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"half-open connection": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"200 ms latency with jitter": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"Redis SIGSTOP": {"the rival's lock", []want{
		{"hold", "told: deadline", "L − M"},
		{"rival's Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, memory empty": {"the rival's lock", []want{
		{"hold", "told: gone", "D + W + C"},
		{"rival's Acquire", "nil", "D + L + B + C"},
	}},
	"Redis SIGKILL, AOF": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"FLUSHALL": {"the rival's lock", []want{
		{"hold", "told: gone", "W + C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"key deleted": {"the rival's lock", []want{
		{"hold", "told: gone", "W + C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"key overwritten": {"nothing", []want{
		{"hold", "told: gone", "W + C"},
		{"rival's Acquire", "ErrConfig", "L + C"},
	}},
	"script cache flushed": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"pub/sub connection killed": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"CLIENT PAUSE": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"out of memory": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"READONLY": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"ACL change": {"the rival's lock", []want{
		{"hold", "told: deadline", "L − M"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"holder SIGSTOP": {"the rival's lock", []want{
		{"hold", "told: deadline", "D"},
		{"rival's Acquire", "nil", "L + C"},
	}},
	"starved CPU": {"the victim's lock", []want{
		{"hold", "held", ""},
		{"Release", "nil", "C"},
		{"rival's Acquire", "nil", "2C"},
	}},
	"long GC pause": {"the rival's lock", []want{
		{"hold", "told: deadline", "D"},
		{"rival's Acquire", "nil", "L + C"},
	}},
}
