package queue

// Pack is the word's encoder; the decoders are exported.
func Pack(state State, count, handOffs int) Word { return pack(state, count, handOffs) }
