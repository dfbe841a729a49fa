-- enlist.lua enters processes among those that wait, see wake.lua.      R8

local FORGOTTEN = 300000 -- after so long without anybody new, nobody waits for a queue that is none

-- enlist_part is enlist for a process that asks for a part of the queue.
local function enlist_part(self, wait, poll)
  server = server or clock()
  wait = math.min(wait, poll)
  call("ZREMRANGEBYSCORE", WAITERS, number(PARTS), number(PARTS + server - 1000))
  call("ZADD", WAITERS, number(PARTS + server + wait), self)
  if not known then call("PEXPIRE", WAITERS, FORGOTTEN) end
  use(USE_WAITERS + USE_PARTS)
  return wait
end

-- enlist registers the process that runs the script, which will come in a while at the latest, and
-- returns how long that is. If another comes for the same, this one comes a little later; explicit
-- instants are always exact. Who did not come is forgotten now and then.
local function enlist(self, wait, poll)
  server = server or clock()
  if server % 8 == 0 then call("ZREMRANGEBYSCORE", WAITERS, "-inf", number(server - 1000)) end
  local first = others(self)
  while first and wait <= poll do
    if first[2] <= server + wait + 5 then
      if ARGV[1] == "" then wait = wait + slack() end
      break
    end
    if first[2] <= server + wait + BACKUP or come(first[1], wait + slack()) then break end
    first = others(self)
  end
  wait = math.min(wait, poll)
  call("ZADD", WAITERS, number(server + wait), self)
  if not known then call("PEXPIRE", WAITERS, FORGOTTEN) end
  use(USE_WAITERS)
  return wait
end
