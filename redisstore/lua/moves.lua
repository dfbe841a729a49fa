-- moves.lua has what happens to one record, and what time does to a queue.      R6 R7 R13

local soonest = math.huge -- due time of what became claimable earlier than it was
local LEFT_OVER = 1000    -- records that a script moves beyond those that it was asked for, about

-- keyed says whether a record stands in the order of its key. A plain script meets one with a key
-- only if meta is not what it was: then it leaves to Repair what is told of keys.
local function keyed(r) return groups and r.keylen > 0 end

-- place makes a record wait.
local function place(r)
  local m = member(r)
  if r.expirein > 0 then
    call("ZADD", EXPIRIES, number(r.first + r.expirein), m)
    use(USE_EXPIRIES)
    ends_at(r.first + r.expirein)
  end
  if keyed(r) then return groups.wait(r, m) end
  call("ZADD", PLACES, number(band(r.priority) + r.due), m)
  use(bit.lshift(1, r.priority))
  if r.due < soonest then soonest = r.due end
end

-- unplace takes a live record out of the order it stands in.
local function unplace(r)
  local m = member(r)
  if r.leased then
    call("ZREM", LEASES, m)
    return keyed(r) and groups.unlease(r)
  end
  if r.expirein > 0 then call("ZREM", EXPIRIES, m) end
  if keyed(r) then return groups.unwait(r, m) end
  call("ZREM", PLACES, m)
end

-- forget removes a live record, and its successor unless that was taken before.
local function forget(r)
  call("HDEL", RECORDS, r.id, "\1" .. r.id, "\2" .. r.id)
  if keyed(r) then groups.leave(r) end
end

-- start makes a successor a record of the queue.
local function start(id, blob)
  if not blob then return end
  call("HSET", RECORDS, id, blob)
  if uses(USE_WINDOWS) then call("ZREM", WINDOWS, id) end
  count(ENQUEUED)
  local r = parse(id, blob, false)
  place(r)
  if keyed(r) then groups.join(r) end
end

-- finish ends the life of an unplaced record and returns its successor for start.
local function finish(r)
  local successor = r.successor and call("HGET", RECORDS, "\2" .. r.id)
  forget(r)
  return successor
end

-- keep stores a record that is finished in one of the structures for those.
local function keep(key, r, at)
  r.leased, r.successor, r.token, r.till, r.by = false, false, 0, 0, ""
  local m = member(r)
  call("HSET", RECORDS, "\3" .. m, bury_blob(r, at))
  call("ZADD", key, number(at), m)
  call("ZADD", NAMES, 0, r.id .. "\0" .. string.sub(m, 1, 6))
  return m
end

local function die(r, at)
  local successor = finish(r)
  if groups then groups.mourn(r, at) end
  keep(DEAD, r, at)
  count(RARE.DIED)
  start(r.id, successor)
end

local function expire(r)
  unplace(r)
  count(RARE.EXPIRED)
  start(r.id, finish(r))
end

-- again makes an unplaced record, whose delivery ended at an instant, wait until it is due; it is
-- dead if no attempt or no delivery is left. Unless alone it takes those behind it along. R7 R11
local function again(r, due, reason, ended, alone)
  if reason ~= "" then r.reason = reason end
  if r.max > 0 and r.attempts >= r.max then return die(r, ended) end
  if max_deliveries > 0 and r.deliveries >= max_deliveries then
    r.reason = "too many deliveries"
    return die(r, ended)
  end
  r.leased, r.token, r.till, r.by, r.due = false, 0, 0, "", due
  call("HSET", RECORDS, "\1" .. r.id, progress_of(r))
  use(USE_AGAIN)
  place(r)
  if keyed(r) and not alone then groups.give_back(r, ended) end
end

local function lapse(r)
  unplace(r)
  count(RARE.LAPSED)
  note(r, r.till, "lease ended")
  again(r, r.till, "lease ended", r.till)
end

-- load returns the live record of an id as it is stored.
local function load(id)
  local v = call("HMGET", RECORDS, id, "\1" .. id)
  return v[1] and parse(id, v[1], v[2])
end

-- find returns the live record of an id after what time has done to it, nil if there is none. R6
local function find(id, r)
  r = r or load(id)
  while r do
    if r.leased and r.till <= now then
      lapse(r)
    elseif not r.leased and r.expirein > 0 and r.first + r.expirein <= now then
      expire(r)
    else
      return r
    end
    r = load(id)
  end
end

-- first_of returns the lowest score of a zset.
local function first_of(key, used)
  if not uses(used) then return math.huge end
  local head = call("ZRANGE", key, 0, 0, "WITHSCORES")
  if head[1] then return tonumber(head[2]) end
  unuse(used)
  return math.huge
end

-- first_end is when the first lease ends.
local function first_end() return math.min(first_of(LEASES, USE_LEASES), granted.ends()) end

local sweep
do -- what is local here is not counted: a script may have 200 locals
  local NEVER = 281474976710655 -- 2^48 - 1 ms, beyond every instant

  -- over returns the members of a zset that are over by now, in bounded number.
  local function over(key, used, most)
    if not uses(used) then return {} end
    return call("ZRANGE", key, "-inf", number(now), "BYSCORE", "LIMIT", 0, most)
  end

  -- sweep works off what time has done to the queue.
  function sweep()
    local due, left = now >= q[SOON], SWEEP
    if due then granted.ended_out() end
    for _, m in ipairs(due and over(LEASES, USE_LEASES, SWEEP) or {}) do
      local r = load(string.sub(m, 7))
      if r and r.leased and member(r) == m then lapse(r) else call("ZREM", LEASES, m) end
      if groups and groups.given >= LEFT_OVER then break end
    end
    if groups then groups.expire_idle() end
    due = now >= q[SOON] -- the successor of an idle record may have expired
    while due and left > 0 do -- the successor of an expired record may have expired too
      local late = over(EXPIRIES, USE_EXPIRIES, left)
      if #late == 0 then break end
      for _, m in ipairs(late) do
        local r = load(string.sub(m, 7))
        if r and not r.leased and member(r) == m then expire(r) else call("ZREM", EXPIRIES, m) end
      end
      left = left - #late
    end
    if due then
      local ended = over(WINDOWS, USE_WINDOWS, SWEEP)
      if #ended > 0 then call("ZREMRANGEBYRANK", WINDOWS, 0, #ended - 1) end
      set(SOON, math.min(first_end(), first_of(EXPIRIES, USE_EXPIRIES), first_of(WINDOWS, USE_WINDOWS), NEVER))
    end
    if groups then groups.trim() end
  end
end

-- A script at maxmemory may go on if its first write does not grow anything.
local function ease() call("HDEL", META, "-") end
