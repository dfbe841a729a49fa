-- repair compares the structures of a queue with its records, a step at a time.     R14
--
-- KEYS  1-9  of the queue, see queue.lua
-- ARGV  1    now     instant, "" for the server's clock
--       2    dry     1 to change nothing, else 0
--       3    phase   what the step looks at: records, places, leases, expiries, windows, dead, names,
--                    numbers
--       4    cursor  of the step before in that phase, "0" begins
--       5    limit   entries to look at, about
-- Returns {checked, cursor, what, count, ...}: cursor is "0" when the phase is over, what a kind of
-- damage in words. A leased record that lost its place among the leases keeps its lease.

local dry, phase, cursor, limit = ARGV[2] == "1", ARGV[3], ARGV[4], ARGV[5]
local checked, order, counts = 0, {}, {}

-- broken counts a kind of damage, and says whether to mend it.
local function broken(what)
  if not counts[what] then
    order[#order + 1] = what
    counts[what] = 0
  end
  counts[what] = counts[what] + 1
  return not dry
end

local function score(key, m) return tonumber(call("ZSCORE", key, m) or nil) end

local function wants(key, m, at, bits, what)
  if score(key, m) ~= at and broken(what) then call("ZADD", key, number(at), m) end
  if not uses(bits) and broken("structure not in use") then use(bits) end
end

local function number_at_least(field, n)
  if n > q[field] and broken("wrong number") then set(field, n) end
end

local function check_live(id, blob)
  local r = parse(id, blob, call("HGET", RECORDS, "\1" .. id))
  local m = member(r)
  number_at_least(SEQ, r.seq)
  if r.leased then
    number_at_least(TOKEN, r.token)
    wants(LEASES, m, r.till, USE_LEASES, "lease without place")
  else
    wants(PLACES, m, band(r.priority) + r.due, bit.lshift(1, r.priority), "record without place")
    if r.expirein > 0 then
      wants(EXPIRIES, m, r.first + r.expirein, USE_EXPIRIES, "record without expiry")
    end
  end
  if r.successor and call("HEXISTS", RECORDS, "\2" .. id) == 0 and broken("successor missing") then
    r.successor = false
    call("HSET", RECORDS, "\1" .. id, progress_of(r))
  end
end

local function check_successor(id, blob)
  local r = load(id)
  if not r then
    if broken("successor without record") then
      call("HDEL", RECORDS, "\2" .. id)
      start(id, blob)
    end
  elseif not r.successor and broken("successor without record") then
    r.successor = true
    call("HSET", RECORDS, "\1" .. id, progress_of(r))
  end
end

local function check_dead(m, value)
  local finished = exhume(value)
  local name = string.sub(m, 7) .. "\0" .. string.sub(m, 1, 6)
  number_at_least(SEQ, (unpick(">I6", m)))
  if score(DEAD, m) ~= finished and broken("dead record without place") then
    call("ZADD", DEAD, number(finished), m)
  end
  if not score(NAMES, name) and broken("dead record without name") then call("ZADD", NAMES, 0, name) end
end

local function check_record(field, value)
  local kind, id = string.sub(field, 1, 1), string.sub(field, 2)
  if kind == "\1" then
    if call("HEXISTS", RECORDS, id) == 0 and broken("progress without record") then
      call("HDEL", RECORDS, field)
    end
  elseif kind == "\2" then
    check_successor(id, value)
  elseif kind == "\3" then
    check_dead(id, value)
  else
    check_live(field, value)
  end
end

-- What else there is must belong to a record in the right state, and stand where that says.
local rights = {
  places = function(m, at)
    local r = load(string.sub(m, 7))
    return r and member(r) == m and not r.leased and band(r.priority) + r.due == at
  end,
  leases = function(m, at)
    local r = load(string.sub(m, 7))
    return r and member(r) == m and r.leased and r.till == at
  end,
  expiries = function(m, at)
    local r = load(string.sub(m, 7))
    return r and member(r) == m and not r.leased and r.expirein > 0 and r.first + r.expirein == at
  end,
  windows = function(m) return call("HEXISTS", RECORDS, m) == 0 end,
  dead = function(m) return call("HEXISTS", RECORDS, "\3" .. m) == 1 end,
  names = function(m)
    return call("HEXISTS", RECORDS, "\3" .. string.sub(m, -6) .. string.sub(m, 1, -8)) == 1
  end,
}
local keys = { places = PLACES, leases = LEASES, expiries = EXPIRIES, windows = WINDOWS, dead = DEAD, names = NAMES }
local words = {
  places = "place without record", leases = "lease without record", expiries = "expiry without record",
  windows = "window of a live id", dead = "place without dead record", names = "name without dead record",
}

ease()
sweep()

if phase == "records" then
  local page = call("HSCAN", RECORDS, cursor, "COUNT", limit)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    checked = checked + 1
    check_record(page[2][i], page[2][i + 1])
  end
elseif phase == "numbers" then
  local total = call("ZCARD", PLACES) + call("ZCARD", LEASES) + call("ZCARD", DEAD)
  local off = total - (q[ENQUEUED] - q[REPLACED] - q[ACKED] - q[EXPIRED] - q[CANCELED] - q[PURGED])
  checked, cursor = 1, "0"
  if off ~= 0 and broken("wrong count") then
    local field = off > 0 and ENQUEUED or PURGED -- no counter falls
    set(field, q[field] + math.abs(off))
  end
else
  local key, right = keys[phase], rights[phase]
  local page = call("ZSCAN", key, cursor, "COUNT", limit)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    checked = checked + 1
    local m = page[2][i]
    if not right(m, tonumber(page[2][i + 1])) and broken(words[phase]) then call("ZREM", key, m) end
  end
end

notify()
save(#order > 0 and not dry)
local reply = { checked, cursor }
for _, what in ipairs(order) do
  reply[#reply + 1] = what
  reply[#reply + 1] = counts[what]
end
return reply
