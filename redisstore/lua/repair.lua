-- repair compares the structures of a queue with its records, a step at a time.     R14
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now     instant, "" for the server's clock
--       2    dry     1 to change nothing, else 0
--       3    phase   what the step looks at: grants, records, keys, numbers, or one of the other structures
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
  if bits >= USE_LEASES and at < q[SOON] and broken("end that no sweep would find") then ends_at(at) end
  if not uses(bits) and broken("structure not in use") then use(bits) end
end

local function number_at_least(field, n)
  if n > q[field] and broken("wrong number") then set(field, n) end
end

-- stands_right says whether a key stands where its head and the configuration want it.
local function stands_right(g)
  local since, priority, due = place_turn(g)
  return score(HEADS, g.key) == due
    and score(TURNS, pack(">I7", g.number) .. g.key) == (since and band(priority) + since)
    and score(IDLE, g.key) == (set_to.key_idle > 0 and due and g.joined or nil)
    and not (since and not uses(bit.lshift(USE_TURNS, priority)))
end

-- check_group compares what is known about a key with its members.
local function check_group(g)
  local waiting = call("ZLEXCOUNT", MEMBERS, "[" .. g.key .. "\0W", "(" .. g.key .. "\0X")
  local leased = call("ZLEXCOUNT", MEMBERS, "[" .. g.key .. "\0X", "(" .. g.key .. "\0Y")
  if not g.served then
    g.served, g.number, g.joined = now, q[SEQ], now
    g.waiting, g.leased = waiting, leased
  end
  local counted = g.waiting == waiting and g.leased == leased and waiting + leased > 0
    and g.stored and score(SIZES, g.key) == -waiting
  local placed = counted and stands_right(g)
  if counted and not placed and groups.passing() then -- what the pass has yet to reach is not damaged
    if not dry then touch(g) end
  elseif not placed and broken("wrong state of a key") then
    g.waiting, g.leased, g.unsure = waiting, leased, true
    touch(g)
  end
end

local function check_in_key(r, m)
  local g = group_of(r)
  local kind = r.leased and "X" or "W"
  local known = in_key(g, r, kind)
  if not r.leased and score(KEYED, m) ~= band(r.priority) + r.due and broken("record without place") then
    call("ZADD", KEYED, number(band(r.priority) + r.due), m)
  end
  if not score(MEMBERS, known) and broken("record missing in its key") then
    call("ZADD", MEMBERS, 0, known)
    call("ZREM", MEMBERS, in_key(g, r, r.leased and "W" or "X"))
  end
  if not uses(USE_WHOLE) and broken("structure not in use") then use(USE_WHOLE) end
  if not g.checked then
    g.checked = true
    check_group(g)
  end
end

local check_grant, check_record
do -- what is local here is not counted: a script may have 200 locals
  local function check_live(id, blob)
    local progress = call("HGET", RECORDS, "\1" .. id)
    local r = parse(id, blob, progress)
    local m = member(r)
    number_at_least(SEQ, r.seq)
    if r.leased then
      number_at_least(TOKEN, r.token)
      wants(LEASES, m, r.till, USE_LEASES, "lease without place")
    else
      if progress and not uses(USE_AGAIN) and broken("structure not in use") then use(USE_AGAIN) end
      if r.keylen == 0 then
        wants(PLACES, m, band(r.priority) + r.due, bit.lshift(1, r.priority), "record without place")
      end
      if r.expirein > 0 then
        wants(EXPIRIES, m, r.first + r.expirein, USE_EXPIRIES, "record without expiry")
      end
    end
    if r.keylen > 0 then check_in_key(r, m) end
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
      use(USE_AGAIN)
    end
  end

  local function check_finished(m, value)
    local finished, progress = exhume(value)
    local flags = string.byte(progress)
    local key = bit.band(flags, DONE_FLAG) ~= 0 and DONE or DEAD
    local name = string.sub(m, 7) .. "\0" .. string.sub(m, 1, 6)
    number_at_least(SEQ, (unpick(">I6", m)))
    if score(key, m) ~= finished and broken("finished record without place") then
      call("ZADD", key, number(finished), m)
      use(USE_WHOLE)
    end
    if key == DONE and not uses(USE_DONE) and broken("structure not in use") then use(USE_DONE) end
    if bit.band(flags, UNTOLD_FLAG) ~= 0 and not score(UNTOLD, m) and broken("untold record without place") then
      call("ZADD", UNTOLD, number(finished), m)
      use(USE_WHOLE)
    end
    if not score(NAMES, name) and broken("finished record without name") then call("ZADD", NAMES, 0, name) end
  end

  -- check_grant looks at what is left of a grant that meta does not know, if it was lost. Who has not
  -- left it since is still leased, as far as anybody can tell.
  function check_grant(token, text)
    if not broken("lease without place") then return end
    local function lease(id, m, progress)
      local r = load(id)
      if r and member(r) == m and not call("HGET", RECORDS, "\1" .. id) and not score(PLACES, m) then
        call("HSET", RECORDS, "\1" .. id, progress)
      end
    end
    if #token == 7 then granted.read(unpick(">I7", token), text, 2 ^ GRANT_MOST - 1, lease) end
    call("HDEL", RECORDS, "\4" .. token)
  end

  function check_record(field, value)
    local kind, id = string.sub(field, 1, 1), string.sub(field, 2)
    if kind == "\1" then
      if call("HEXISTS", RECORDS, id) == 0 and broken("progress without record") then
        call("HDEL", RECORDS, field)
      end
    elseif kind == "\2" then
      check_successor(id, value)
    elseif kind == "\3" then
      check_finished(id, value)
    elseif kind ~= "\4" then
      check_live(field, value)
    end
  end
end

-- What else there is must belong to a record in the right state, and stand where that says.
local rights = {
  places = function(m, at)
    local r = load(string.sub(m, 7))
    return r and member(r) == m and not r.leased and r.keylen == 0 and band(r.priority) + r.due == at
  end,
  keyed = function(m, at)
    local r = load(string.sub(m, 7))
    return r and member(r) == m and not r.leased and r.keylen > 0 and band(r.priority) + r.due == at
  end,
  members = function(m)
    local g = group((string.match(m, "^(%Z*)")))
    local _, _, _, id = open_member(g, m)
    local r = load(id)
    local right = r and r.keylen > 0 and group_of(r) == g and in_key(g, r, r.leased and "X" or "W") == m
    if not right then g.recount = true end
    return right
  end,
  turns = function(m, at)
    local g = group(string.sub(m, 8))
    if not g.served or g.stands ~= m then return false end
    if groups.passing() then return true end
    local since, priority = place_turn(g)
    return since and band(priority) + since == at
  end,
  heads = function(m) return group(m).waiting > 0 end,
  sizes = function(m) return group(m).served ~= nil end,
  idle = function(m) return (set_to.key_idle > 0 or groups.passing()) and group(m).waiting > 0 end,
  done = function(m) return call("HEXISTS", RECORDS, "\3" .. m) == 1 and not score(DEAD, m) end,
  untold = function(m) return score(DEAD, m) ~= nil end,
  leases = function(m, at)
    local r = load(string.sub(m, 7))
    return r and member(r) == m and r.leased and r.till == at
  end,
  expiries = function(m, at)
    local r = load(string.sub(m, 7))
    return r and member(r) == m and not r.leased and r.expirein > 0 and r.first + r.expirein == at
  end,
  windows = function(m) return call("HEXISTS", RECORDS, m) == 0 end,
  waiters = function(m, at) -- who has not come for a minute does not come any more
    if at >= PARTS then at = at - PARTS end
    server = server or clock()
    return string.match(m, "^%*?bide:%S+ %S") ~= nil and at > server - 60000
  end,
  dead = function(m) return call("HEXISTS", RECORDS, "\3" .. m) == 1 end,
  names = function(m)
    return call("HEXISTS", RECORDS, "\3" .. string.sub(m, -6) .. string.sub(m, 1, -8)) == 1
  end,
}
local keys = {
  waiters = WAITERS,
  places = PLACES, leases = LEASES, expiries = EXPIRIES, windows = WINDOWS, dead = DEAD, names = NAMES, keyed = KEYED,
  members = MEMBERS, turns = TURNS, heads = HEADS, sizes = SIZES, idle = IDLE, done = DONE, untold = UNTOLD,
}
local words = {
  waiters = "waiter that does not come",
  keyed = "place without record", members = "record in the wrong key", turns = "turn without key", heads = "head without key",
  sizes = "size without key", idle = "idle key without waiting records", done = "place without done record",
  untold = "untold record without dead one",
  places = "place without record", leases = "lease without record", expiries = "expiry without record",
  windows = "window of a live id", dead = "place without dead record", names = "name without finished record",
}

-- check_bytes compares the bytes of done records with what is counted; of many it looks at some, and
-- is content if the count is about right.
local function check_bytes()
  local n, sum = call("ZCARD", DONE), 0
  local looked = call("ZRANGE", DONE, 0, limit - 1)
  for _, m in ipairs(looked) do
    local value = call("HGET", RECORDS, "\3" .. m)
    if value then
      local _, progress, blob = exhume(value)
      sum = sum + payload_size(parse(string.sub(m, 7), blob, progress))
    end
  end
  local is = numbers.done_bytes
  if n > #looked then
    sum = math.floor(sum / #looked * n)
    if is * 2 >= sum and is <= sum * 2 then return end
  end
  if is ~= sum and broken("wrong count of bytes") then tally("done_bytes", sum - is) end
end

ease()
granted.all_out()
sweep()
groups.flush()
if call("ZCARD", MEMBERS) ~= call("ZCOUNT", MEMBERS, 0, 0) and broken("record in the wrong key") then
  call("ZREMRANGEBYSCORE", MEMBERS, "(0", "+inf") -- nothing has a score there, or lexical ranges are void
  call("ZREMRANGEBYSCORE", MEMBERS, "-inf", "(0")
end

if phase == "grants" then
  local page = call("HSCAN", RECORDS, cursor, "MATCH", "\4*", "COUNT", limit)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    checked = checked + 1
    check_grant(string.sub(page[2][i], 2), page[2][i + 1])
  end
elseif phase == "records" then
  local page = call("HSCAN", RECORDS, cursor, "COUNT", limit)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    checked = checked + 1
    check_record(page[2][i], page[2][i + 1])
  end
elseif phase == "keys" then
  local page = call("HSCAN", GROUPS, cursor, "COUNT", limit)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    checked = checked + 1
    check_group(group(page[2][i]))
  end
elseif phase == "numbers" then
  local total = call("ZCARD", PLACES) + call("ZCARD", KEYED) + call("ZCARD", LEASES) + call("ZCARD", DEAD) + call("ZCARD", DONE)
  local off = total - (q[ENQUEUED] - q[RARE.REPLACED] - q[ACKED] - q[RARE.EXPIRED] - q[RARE.CANCELED] - q[RARE.PURGED]
    - numbers.dropped + numbers.retained - numbers.trimmed)
  checked, cursor = 1, "0"
  local parts = call("ZCOUNT", WAITERS, number(PARTS), "+inf") > 0
  if (call("ZCARD", WAITERS) > 0 and not uses(USE_WAITERS) or parts and not uses(USE_PARTS))
    and broken("structure not in use") then
    use(USE_WAITERS + USE_PARTS)
  end
  check_bytes()
  if off ~= 0 and broken("wrong count") then
    local field = off > 0 and ENQUEUED or RARE.PURGED -- no counter falls
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
  for _, g in pairs(seen) do
    if g.recount and not dry then check_group(g) end
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
