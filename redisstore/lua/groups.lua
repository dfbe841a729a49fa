-- groups.lua knows the keys of a queue: who waits in them and whose turn it is.       R3 R11 R18
--
-- A member of members is key "\0W" or "\0X", instant, sequence, priority and id: W waits and X is
-- leased; the instant is that of the key's order. A key in turns stands there as the number of its
-- turn in seven bytes and itself. Control characters are in no key.

local GROUP = ">I6I7I6I6I4" -- served, number, joined, waiting, leased
local seen, list = {}, {} -- keys that the script has met, and those that changed

-- group returns what is known about a key; served is nil if nothing is.
local function group(key)
  local g = seen[key]
  if g then return g end
  g = { key = key, waiting = 0, leased = 0 }
  local stored = call("HGET", GROUPS, key)
  if stored then
    g.served, g.number, g.joined, g.waiting, g.leased = unpick(GROUP, stored)
    g.stands, g.stored, g.was = pack(">I7", g.number) .. key, true, g.waiting
  end
  seen[key] = g
  return g
end

-- touch notes that a key has changed, and may have moved unless it is said to stay.
local function touch(g, stays)
  if not g.changed then
    g.changed, list[#list + 1] = true, g
  end
  g.moved = g.moved or not stays
end

local function group_of(r)
  return group(string.sub(r.blob, BODY, BODY + r.keylen - 1))
end

local function in_key(g, r, kind)
  local at = set_to.ordered == 1 and r.first or r.due
  return g.key .. "\0" .. kind .. pack(">I6I6B", at, r.seq, r.priority) .. r.id
end

local function first_in_key(g, skip)
  return call("ZRANGE", MEMBERS, "[" .. g.key .. "\0W", "(" .. g.key .. "\0X", "BYLEX", "LIMIT", skip, 1)[1]
end

-- open_member returns instant, sequence, priority and id of a member.
local function open_member(g, m)
  if #m < #g.key + 15 then return 0, 0, 0, "" end -- which no record has written
  local at, seq, priority = unpick(">I6I6B", m, #g.key + 3)
  return at, seq, priority, string.sub(m, #g.key + 16)
end

function groups.ordered() return set_to.ordered == 1 end

-- enter counts a record that waits and returns what it is among the members.
function groups.enter(r)
  local g = group_of(r)
  if not g.served then g.served, g.number, g.joined = now, r.seq, now end
  g.waiting = g.waiting + 1
  touch(g)
  return in_key(g, r, "W")
end

function groups.wait(r, m)
  call("ZADD", KEYED, number(band(r.priority) + r.due), m)
  call("ZADD", MEMBERS, 0, groups.enter(r))
end

function groups.unwait(r, m)
  local g = group_of(r)
  call("ZREM", KEYED, m)
  call("ZREM", MEMBERS, in_key(g, r, "W"))
  g.waiting = math.max(0, g.waiting - 1) -- less than none is damage
  touch(g)
end

-- let_go counts a record whose lease is over and returns what it was among the members.
function groups.let_go(r)
  local g = group_of(r)
  g.leased = math.max(0, g.leased - 1)
  touch(g, set_to.ordered == 0 and set_to.key_limit == 0)
  return in_key(g, r, "X")
end

function groups.unlease(r) call("ZREM", MEMBERS, groups.let_go(r)) end

-- leave ends a key with its last record. If another one joins it, the key begins anew.
function groups.leave(r)
  local g = group_of(r)
  if g.waiting + g.leased == 0 then g.served = nil end
end

function groups.join(r)
  group_of(r).joined = now
end

-- give_back ends the leases of those behind a record that waits again in an ordered queue, and
-- counts them.
groups.given = 0
function groups.give_back(r, ended)
  if set_to.ordered == 0 then return end
  local g = group_of(r)
  local low = "(" .. g.key .. "\0X" .. pack(">I6I6", r.first, r.seq) .. "\255"
  for _, m in ipairs(call("ZRANGE", MEMBERS, low, "(" .. g.key .. "\0Y", "BYLEX")) do
    local _, _, _, id = open_member(g, m)
    local other = load(id)
    if other and other.leased then
      unplace(other)
      count(RARE.RELEASED)
      other.attempts = other.attempts - 1
      again(other, other.due, "", ended, true)
      groups.given = groups.given + 1
    end
  end
end

-- dues_in_key is when members are due. In an ordered queue that is not what places them.
local function dues_in_key(g, members)
  local dues, fields = {}, {}
  for i, m in ipairs(members) do
    local at, _, _, id = open_member(g, m)
    dues[i], fields[i] = at, "\1" .. id
  end
  if set_to.ordered == 0 or #members == 0 then return dues end
  for i, progress in ipairs(call("HMGET", RECORDS, unpack(fields))) do
    if progress then
      local _, _, due = unpick(">BI6I6", progress)
      dues[i] = due
    end
  end
  return dues
end

-- place_turn finds out where a key stands: when it is claimable, the priority of its head, and the
-- due time of that. The first is nil if the key has as many leases as it may.
local function place_turn(g)
  local m = first_in_key(g, 0)
  if not m then return end
  local _, _, priority = open_member(g, m)
  local due = dues_in_key(g, { m })[1]
  local most = set_to.ordered == 1 and 1 or set_to.key_limit
  if most > 0 and g.leased >= most then return nil, priority, due end
  local free = due
  if set_to.min_batch > 1 then
    free = due + set_to.linger
    local nth = first_in_key(g, set_to.min_batch - 1)
    if nth then free = math.min(free, math.max(due, (open_member(g, nth)))) end
  end
  return math.max(free, g.served), priority, due
end

local idles = set_to.key_idle > 0 or pass ~= "" -- otherwise nothing stands there

do -- what is local here is not counted: a script may have 200 locals
  local function forget_key(g)
    if g.stands then call("ZREM", TURNS, g.stands) end
    call("HDEL", GROUPS, g.key)
    call("ZREM", HEADS, g.key)
    call("ZREM", SIZES, g.key)
    if idles then call("ZREM", IDLE, g.key) end
    g.served, g.stands, g.stored, g.was = nil, nil, nil, nil
  end

  -- settle_key writes what has changed about a key.
  local function settle_key(g)
    local moved = g.moved or not g.stored
    g.changed, g.moved = false, false
    if g.waiting + g.leased == 0 then return forget_key(g) end
    call("HSET", GROUPS, g.key, pack(GROUP, g.served, g.number, g.joined, g.waiting, g.leased))
    use(USE_WHOLE)
    if not moved then return end
    if g.waiting ~= g.was or g.unsure then call("ZADD", SIZES, -g.waiting, g.key) end
    g.stored, g.was = true, g.waiting
    local stands, since, priority, due = pack(">I7", g.number) .. g.key, place_turn(g)
    if g.stands and (g.stands ~= stands or not since) then call("ZREM", TURNS, g.stands) end
    g.stands, g.since, g.priority = since and stands, since or false, priority
    if since then
      call("ZADD", TURNS, number(band(priority) + since), stands)
      use(bit.lshift(USE_TURNS, priority))
      if since < soonest then soonest = since end
    end
    if due then call("ZADD", HEADS, number(due), g.key) else call("ZREM", HEADS, g.key) end
    if set_to.key_idle > 0 and due then
      call("ZADD", IDLE, number(g.joined), g.key)
    elseif idles then
      call("ZREM", IDLE, g.key)
    end
  end

  function groups.flush()
    for i, g in ipairs(list) do
      settle_key(g)
      list[i] = nil
    end
  end
end

-- passing says whether keys stand where another configuration has them.
function groups.passing() return pass ~= "" end

-- go_over settles some keys anew, by name, and remembers where to go on. The clock may have stepped
-- back behind the turns of some.
local function go_over()
  idles = true
  for _ = 1, SWEEP do
    local m = call("ZRANGE", MEMBERS, "(" .. string.sub(pass, 2) .. "\1", "+", "BYLEX", "LIMIT", 0, 1)[1]
    renumbered = true
    if not m then
      pass = ""
      return
    end
    local g = group((string.match(m, "^(%Z*)")))
    if g.served then
      g.served = math.min(g.served, now)
      touch(g)
    end
    pass = "\1" .. g.key
  end
end
