-- stats counts a queue.
--
-- KEYS  1-9  of the queue, see queue.lua
-- ARGV  1    now      instant, "" for the server's clock
-- Returns {now, paused, expire in, max deliveries, delayed, ready, leased, dead, next due,
-- counters...}: next due is -1 if nothing waits; the counters stand in the order of queue.lua.

ease()
sweep()

local delayed, ready, due = 0, 0, math.huge
for priority = 0, 9 do
  if uses(bit.lshift(1, priority)) then
    local base = band(priority)
    local last = number(base + BAND - 1)
    ready = ready + call("ZCOUNT", PLACES, number(base), number(base + now))
    delayed = delayed + call("ZCOUNT", PLACES, "(" .. number(base + now), last)
    local first = call("ZRANGE", PLACES, number(base), last, "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
    if first[1] then due = math.min(due, tonumber(first[2]) - base) end
  end
end
notify()
save()
local reply = { now, paused, expire_in, max_deliveries, delayed, ready, call("ZCARD", LEASES),
  call("ZCARD", DEAD), due < math.huge and due or -1 }
for field = ENQUEUED, STEPS do reply[#reply + 1] = q[field] end
return reply
