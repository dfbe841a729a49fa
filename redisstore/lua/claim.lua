-- claim leases due records of a queue.                                  R2 R3 R4 R5
--
-- KEYS  1-18  of the queue, 1-9 if it has no keys, see state.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2    limit    see lease.lua
--       3    bytes    see lease.lua
--       4    lease    see lease.lua
--       5    by       see lease.lua
--       6    self     "channel queue" of a process that will wait if it gets less than limit, or "";
--                     "*channel queue n" if it asks for a part
--       7    poll     longest duration that it waits
--       8    group    1 for a run of one key, else 0
--       9    part     "+" if keys follow that it asks for, "-" if keys that it does not, "" if it
--                     asks for everything
--       10   keys     each behind its length in two bytes
-- Returns {now, next, told, 0, id, record, progress, ...}: next is how long until something is
-- claimable by time alone, -1 if nothing will be; told is how long the process may wait, -1 if it
-- was not entered.

local self, poll = ARGV[6], tonumber(ARGV[7])

ease()
if #grants / GRANT_SIZE + math.ceil(ARGV[2] / GRANT_MOST) > MOST_GRANTS then granted.all_out() end -- to make room
sweep()
local swept = soonest

local next_at = math.huge
if paused == 0 then -- R15
  if groups then
    next_at = groups.claim(ARGV[8] == "1")
  else
    for priority = 9, 0, -1 do
      if uses(bit.lshift(1, priority)) then next_at = math.min(next_at, claim_keyless(priority)) end
    end
    if not uses(1023) then unuse(USE_AGAIN) end
    next_at = (stopped or next_at <= now) and now or math.min(next_at, first_end())
  end
end
if taken == 0 then count(EMPTY) end

local wait = math.max(0, next_at - now)
if wait < math.huge then reply[2] = wait end
if ARGV[9] ~= "" then -- what the sweep made claimable may be for others
  if self ~= "" then call("ZREM", WAITERS, self) end
  soonest = swept
  notify()
  if self ~= "" and taken < limit and wait > 0 then reply[3] = enlist_part(self, wait, poll) end
elseif self ~= "" and taken < limit and wait > 0 then
  reply[3] = enlist(self, wait, poll)
  if reply[3] > wait and reply[2] >= 0 and wait < poll then reply[2] = reply[3] end
elseif uses(USE_WAITERS) then
  if self ~= "" then call("ZREM", WAITERS, self) end
  if paused == 0 then
    if wait == 0 then wake() elseif taken > 0 and wait < math.huge then heed(wait, true) end
  end
end
save()
return reply
