-- select.lua finds the records of one state that a filter selects, in its order.
--
-- ARGV  2    state   "delayed", "ready", "leased", "dead", "done", or "untold" of the dead
--       3    id      "" is any
--       4    key     "" is any
--       5    from    instant, "" is no bound
--       6    to      instant, behind the last, "" is no bound
--       7    desc    1 for the latest first, else 0
--       8    at      of the position to go on behind, "" begins
--       9    seq     of that position
--       10   limit   records at most

local state, only_id, only_key, desc = ARGV[2], ARGV[3], ARGV[4], ARGV[7] == "1"
local from, to = tonumber(ARGV[5]) or 0, tonumber(ARGV[6]) or BAND
local after_at, after_seq, limit = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
if state == "delayed" then from = math.max(from, now + 1) end
if state == "ready" then to = math.min(to, now + 1) end

local function sequence(m) return (unpick(">I6", m)) end

local function behind(at, seq)
  if not after_at then return true end
  if desc then return at < after_at or at == after_at and seq < after_seq end
  return at > after_at or at == after_at and seq > after_seq
end

-- preceding counts the members of a zset before the position, which counts itself unless desc.
local function preceding(key, base)
  if after_at < 0 then return call("ZCOUNT", key, "-inf", "(" .. number(base)) end
  local at = base + math.min(after_at, BAND - 1)
  local low, high = call("ZCOUNT", key, "-inf", "(" .. number(at)), call("ZCOUNT", key, "-inf", number(at))
  while low < high do
    local middle = math.floor((low + high) / 2)
    local seq = sequence(call("ZRANGE", key, middle, middle)[1])
    if seq < after_seq or seq == after_seq and not desc then low = middle + 1 else high = middle end
  end
  return low
end

-- gather adds the first entries {at, seq, member} of a zset that may match, at most so many.
local function gather(entries, key, base, most)
  if from >= to then return end
  local low = call("ZCOUNT", key, "-inf", "(" .. number(base + from))
  local high = call("ZCOUNT", key, "-inf", "(" .. number(base + to))
  if after_at then
    if desc then high = math.min(high, preceding(key, base)) else low = math.max(low, preceding(key, base)) end
  end
  if low >= high then return end
  if desc then low = math.max(low, high - most) else high = math.min(high, low + most) end
  local list = call("ZRANGE", key, low, high - 1, "WITHSCORES")
  for i = 1, #list, 2 do
    entries[#entries + 1] = { tonumber(list[i + 1]) - base, sequence(list[i]), list[i] }
  end
end

local finished = ({ dead = DEAD, done = DONE, untold = UNTOLD })[state]

local function gather_state(entries, most)
  if state == "leased" then return gather(entries, LEASES, 0, most) end
  if finished then return gather(entries, finished, 0, most) end
  local keyed = call("ZCARD", KEYED) > 0
  for priority = 0, 9 do
    if only_key == "" and uses(bit.lshift(1, priority)) then gather(entries, PLACES, band(priority), most) end
    if keyed then gather(entries, KEYED, band(priority), most) end
  end
end

-- gather_key adds the first entries of waiting records of a key. Without an order of its own a key
-- has them in the order of their positions.
local function gather_key(entries, most)
  local g = group(only_key)
  local prefix = only_key .. "\0W"
  local low, high = "[" .. prefix .. pack(">I6", from), "(" .. prefix .. pack(">I6", math.max(0, to))
  if after_at and after_at >= 0 then
    local at = prefix .. pack(">I6I6", math.min(after_at, BAND - 1), after_seq)
    if desc then
      if after_at < to then high = "(" .. at end
    elseif after_at >= from then
      low = "(" .. at .. "\255"
    end
  elseif after_at and desc then
    return
  end
  local list
  if desc then
    list = call("ZREVRANGEBYLEX", MEMBERS, high, low, "LIMIT", 0, most)
  else
    list = call("ZRANGEBYLEX", MEMBERS, low, high, "LIMIT", 0, most)
  end
  for _, m in ipairs(list) do
    local at, seq, _, id = open_member(g, m)
    entries[#entries + 1] = { at, seq, pack(">I6", seq) .. id }
  end
end

-- gather_id adds the entries of one id.
local function gather_id(entries)
  local function add(at, m)
    if at >= from and at < to and behind(at, sequence(m)) then
      entries[#entries + 1] = { at, sequence(m), m }
    end
  end
  if finished then
    local names = call("ZRANGEBYLEX", NAMES, "[" .. only_id .. "\0", "(" .. only_id .. "\1", "LIMIT", 0, 5000)
    for _, name in ipairs(names) do
      local m = string.sub(name, #only_id + 2) .. only_id
      add(tonumber(call("ZSCORE", finished, m) or -1), m)
    end
    return
  end
  local r = load(only_id)
  if r and (r.leased or false) == (state == "leased") then add(r.leased and r.till or r.due, member(r)) end
end

-- read returns record and progress of a member, or the value of a finished one.
local function read(m)
  if finished then
    local value = call("HGET", RECORDS, "\3" .. m)
    if not value then return end
    local _, progress, blob = exhume(value)
    return blob, progress, value
  end
  local id = string.sub(m, 7)
  local v = call("HMGET", RECORDS, id, "\1" .. id)
  if v[1] then return v[1], v[2] end
end

-- select calls use(member, record, progress, value of a finished one) for each record that matches and returns
-- whether there are more, and the position of the last one looked at: -1, 0 if there was none.
local function select(use)
  local entries, look = {}, only_key ~= "" and math.max(200, limit) or limit -- in search of a key it looks at more
  if only_id ~= "" then
    gather_id(entries)
  elseif only_key ~= "" and (state == "delayed" or state == "ready") and not groups.ordered() then
    gather_key(entries, look + 1)
  else
    gather_state(entries, look + 1)
  end
  table.sort(entries, function(a, b)
    if desc then a, b = b, a end
    return a[1] < b[1] or a[1] == b[1] and a[2] < b[2]
  end)
  local found, last = 0, { -1, 0 }
  for i, e in ipairs(entries) do
    if i > look then return true, entries[look] end
    local blob, progress, value = read(e[3])
    local keylen = blob and unpick(">I2", blob, 36)
    if blob and (only_key == "" or string.sub(blob, BODY, BODY + keylen - 1) == only_key) then
      if found == limit then return true, last end
      found, last = found + 1, e
      use(e[3], blob, progress, value)
    end
  end
  return false, last
end
