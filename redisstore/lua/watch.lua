-- watch enters a process that waits without having claimed, or passes on a notice that a process
-- got and does not follow.                                              R8
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now      "", waiting is by the server's clock
--       2    self     "channel queue" of the process, "" to pass on
--       3    poll     longest duration that it waits
-- Returns how long the process may wait, 0 if there is something now: then it was not entered.

ease()
sweep()

local self, poll = ARGV[2], tonumber(ARGV[3])
local wait = math.huge
if paused == 0 then
  wait = math.max(0, first_end() - now)
  for priority = 0, 9 do
    if uses(bit.lshift(1, priority)) then
      local base = band(priority)
      local first = call("ZRANGE", PLACES, number(base), number(base + BAND - 1), "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
      if first[1] then wait = math.min(wait, math.max(0, tonumber(first[2]) - base - now)) end
    end
  end
end
if paused == 0 and groups then
  groups.flush()
  if groups.passing() then wait = 0 end
  for priority = 0, 9 do
    if uses(bit.lshift(USE_TURNS, priority)) then
      local base = band(priority)
      local first = call("ZRANGE", TURNS, number(base), number(base + BAND - 1), "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
      if first[1] then wait = math.min(wait, math.max(0, tonumber(first[2]) - base - now)) end
    end
  end
end
if self ~= "" then
  if wait > 0 then wait = enlist(self, wait, poll) end
elseif uses(USE_WAITERS) and wait < math.huge then
  if wait == 0 then wake() else heed(wait, true) end
end
save()
return math.min(wait, poll)
