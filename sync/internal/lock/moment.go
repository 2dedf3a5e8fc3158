package lock

import (
	"time"

	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// Moment is a monotonic time: how long after the Manager's zero.
type Moment = time.Duration

const never = Moment(conversation.Never)

// Terms are the times of a lock.
type Terms = conversation.Terms
