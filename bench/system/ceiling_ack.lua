-- ceiling_ack removes messages.
--
-- KEYS  as ceiling_put
-- ARGV  ids, at most 4,000
-- Returns how many were leased.

local leased = redis.call("ZREM", KEYS[4], unpack(ARGV))
redis.call("HDEL", KEYS[1], unpack(ARGV))
return leased
