-- The statement of a client about an RWMutex or a Semaphore.
return redis.error_reply('ERR not built yet')
