-- stats counts a queue.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now      instant, "" for the server's clock
-- Returns {now, paused, expire in, max deliveries, settings, delayed, ready, leased, dead, done, keys,
-- next due, counters...}: settings as in settings.lua, next due is -1 if nothing waits; the counters
-- stand in the order of queue.lua, then those of settings.lua.

ease()
sweep()
groups.flush()

local delayed, ready, due = 0, 0, math.huge
for _, key in ipairs({ PLACES, KEYED }) do
  for priority = 0, 9 do
    if key == KEYED and call("ZCARD", KEYED) > 0 or key == PLACES and uses(bit.lshift(1, priority)) then
      local base = band(priority)
      local last = number(base + BAND - 1)
      ready = ready + call("ZCOUNT", key, number(base), number(base + now))
      delayed = delayed + call("ZCOUNT", key, "(" .. number(base + now), last)
      local first = call("ZRANGE", key, number(base), last, "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
      if first[1] then due = math.min(due, tonumber(first[2]) - base) end
    end
  end
end
notify()
save()
local reply = { now, paused, expire_in, max_deliveries, pack_settings(set_to), delayed, ready,
  call("ZCARD", LEASES) + granted.count(), call("ZCARD", DEAD), call("ZCARD", DONE), call("HLEN", GROUPS), due < math.huge and due or -1 }
for field = ENQUEUED, RARE.STEPS do reply[#reply + 1] = q[field] end
for _, name in ipairs({ "dropped", "retained", "trimmed" }) do reply[#reply + 1] = numbers[name] end
return reply
