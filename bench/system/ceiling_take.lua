-- ceiling_take moves ready messages into the lease set.
--
-- KEYS  as ceiling_put
-- ARGV  1  limit  messages, at most 2,000
--       2  until  end of the leases in milliseconds
-- Returns the ids and then their bodies.

local ids = redis.call("RPOP", KEYS[2], ARGV[1])
if not ids then
  return {}
end
local leases = {}
for _, id in ipairs(ids) do
  leases[#leases + 1] = ARGV[2]
  leases[#leases + 1] = id
end
redis.call("ZADD", KEYS[4], unpack(leases))
local reply = ids
local bodies = redis.call("HMGET", KEYS[1], unpack(ids))
for i = 1, #bodies do
  reply[#reply + 1] = bodies[i]
end
return reply
