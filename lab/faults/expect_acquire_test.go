package faults_test

// expectAcquire is what each fault does to the operation of that name.
var expectAcquire = map[string]expectation{
	"reply lost": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnknown", "C"},
		{"Acquire", "nil", "C + B"},
	}},
	"reply late": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnknown", "C"},
		{"Acquire", "nil", "2C + B"},
	}},
	"connection reset": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnknown", "C"},
		{"Acquire", "nil", "C + B"},
	}},
	"half-open connection": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnknown", "C"},
		{"Acquire", "nil", "2C + B"},
	}},
	"200 ms latency with jitter": {"the victim's lock", []want{
		{"TryAcquire", "nil", "C"},
		{"Acquire", "nil", "3C"},
	}},
	"Redis SIGSTOP": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnknown", "C"},
		{"Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, memory empty": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnavailable", "C"},
		{"Acquire", "nil", "D + B + C"},
	}},
	"Redis SIGKILL, AOF": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnavailable", "C"},
		{"Acquire", "nil", "D + B + C"},
	}},
	"FLUSHALL": {"nothing", []want{
		{"Acquire", "nil", "C"},
		{"hold", "told: gone", "W + C"},
	}},
	"key deleted": {"nothing", []want{
		{"Acquire", "nil", "C"},
		{"hold", "told: gone", "W + C"},
	}},
	"key overwritten": {"nothing", []want{
		{"TryAcquire", "ErrConfig", "C"},
		{"Acquire", "ErrConfig", "2C"},
	}},
	"script cache flushed": {"the victim's lock", []want{
		{"TryAcquire", "nil", "C"},
		{"Acquire", "nil", "C"},
	}},
	"pub/sub connection killed": {"the victim's lock", []want{
		{"TryAcquire", "nil", "C"},
		{"Acquire", "nil", "C"},
	}},
	"CLIENT PAUSE": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnknown", "C"},
		{"Acquire", "nil", "D + B + C"},
	}},
	"out of memory": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnavailable", "C"},
		{"Acquire", "nil", "D + B + C"},
	}},
	"READONLY": {"the victim's lock", []want{
		{"TryAcquire", "ErrUnavailable", "C"},
		{"Acquire", "nil", "D + B + C"},
	}},
	"ACL change": {"nothing", []want{
		{"TryAcquire", "ErrConfig", "C"},
		{"Acquire", "ErrConfig", "2C"},
	}},
	"holder SIGSTOP": {"the victim's lock", []want{
		{"Acquire", "nil", "D + B + C"},
	}},
	"starved CPU": {"the victim's lock", []want{
		{"TryAcquire", "nil or ErrUnknown", "C"},
		{"Acquire", "nil", "D + B + C"},
	}},
	"long GC pause": {"the victim's lock", []want{
		{"Acquire", "nil", "D + B + C"},
	}},
}
