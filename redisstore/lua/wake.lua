-- wake.lua tells processes that wait. A member of waiters is "channel queue", its score the instant
-- by the server's clock when that process comes by itself.                R8
--
-- A process that asks for a part of the queue is "*channel queue n", and PARTS is added to its score:
-- all of those are told of whatever becomes claimable, beside the one that asks for everything. A
-- process is told once, of "queue *", however many parts it asks for.
--
-- Who is told of something ready leaves waiters: it claims, and enters again if it finds no more.
-- Who is told of something later stays, and comes then. Nobody hears a process that has died:
-- PUBLISH says so, and the next one is told.

local BACKUP = 1000      -- how much later than the first a second process may come before it is told too

local PARTS = 4503599627370496 -- 2^52

local function tell(m, word)
  local channel, queue = string.match(m, "^(%S+) (.+)$")
  if not channel then return false end -- which no process has written
  return call("PUBLISH", channel, word .. " " .. queue) > 0
end

-- wake sends one process to claim: the one that would sleep longest.
local function wake()
  for _ = 1, SWEEP do
    local m = call("ZREVRANGEBYSCORE", WAITERS, "(" .. number(PARTS), "-inf", "LIMIT", 0, 1)[1]
    if not m then
      if call("ZCARD", WAITERS) == 0 then unuse(USE_WAITERS) end
      return
    end
    call("ZREM", WAITERS, m)
    if tell(m, "ready " .. number(q[WAKEUPS]) .. "." .. number(server)) then return count(WAKEUPS) end
  end
end

-- slack keeps the processes apart that come for the same record.
local function slack() return 20 + server % 80 end

-- others returns the two who come first, except one process that the script knows about.
local function others(self)
  local found = {}
  local list = call("ZRANGE", WAITERS, number(server - 20), "(" .. number(PARTS), "BYSCORE", "LIMIT", 0, 3, "WITHSCORES")
  for i = 1, #list, 2 do
    if list[i] ~= self then found[#found + 1] = { list[i], tonumber(list[i + 1]) } end
  end
  return found[1], found[2]
end

-- come makes a process come in a while.
local function come(m, wait)
  if tell(m, "later " .. number(wait)) then
    call("ZADD", WAITERS, number(server + wait), m)
    return true
  end
  call("ZREM", WAITERS, m)
  return false
end

-- heed sees to it that somebody comes in a while, and a second one soon after: the first may die.
-- Quietly, a process sleeps until then; otherwise it is sent to claim, and learns what is next.
local function heed(wait, quietly)
  for _ = 1, SWEEP do
    local first, second = others()
    if not first then
      if call("ZCARD", WAITERS) == 0 then unuse(USE_WAITERS) end
      return
    end
    local at = server + wait
    if first[2] > at and not quietly then return wake() end
    if first[2] <= at or come(first[1], wait) then
      if not second or second[2] <= at + BACKUP or come(second[1], wait + slack()) then return end
    end
  end
end

-- wake_parts tells all who ask for a part of the queue, and would come later, of what will be
-- claimable in a while.
local function wake_parts(wait)
  if not (uses(USE_PARTS) and uses(USE_WAITERS)) then return end
  local ready = wait <= 0
  local from = PARTS + (ready and 0 or server + wait + 1)
  local list = call("ZRANGE", WAITERS, number(from), "+inf", "BYSCORE")
  if #list == 0 then
    if call("ZCOUNT", WAITERS, number(PARTS), "+inf") == 0 then unuse(USE_PARTS) end
    return
  end
  local word = ready and "ready " .. number(q[WAKEUPS]) .. "." .. number(server) or "later " .. number(wait)
  local heard = {}
  for _, m in ipairs(list) do
    local channel, queue = string.match(m, "^%*(%S+) (%S+)")
    if channel and heard[channel] == nil then
      heard[channel] = call("PUBLISH", channel, word .. " " .. queue .. " *") > 0
      if ready and heard[channel] then count(WAKEUPS) end
    end
    if not ready and channel and heard[channel] then call("ZADD", WAITERS, number(from - 1), m) end
  end
  call("ZREMRANGEBYSCORE", WAITERS, number(from), "+inf") -- those who are told, and the dead
end

-- notify tells whom it concerns of what the script made claimable.
local function notify()
  if groups then groups.flush() end
  if soonest == math.huge or paused == 1 or not uses(USE_WAITERS) then return end
  wake_parts(soonest - now)
  if soonest <= now then wake() else heed(soonest - now) end
end
