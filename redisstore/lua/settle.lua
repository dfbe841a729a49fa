-- settle ends leases of one queue, in order.                            R5 R7
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2... id       of a record
--            verdict  1 ack, 2 retry, 3 release, 4 bury, 5 expire, 6 return; the token; the delay; the reason
-- Returns a string with a byte for every record: 1 if it is settled, 0 if the lease was lost. Those of the
-- last records are missing if too many were given back for one script: nothing was done about them.

local VERDICT, REASON = ">BI7I6", 15
local ACK, RETRY, RELEASE, BURY, RETURN = 1, 2, 3, 4, 6
local CHUNK, AT_ONCE = 2000, 8000000

ease()
local ids, tokens, progresses = {}, {}, {}
for i = 2, #ARGV, 2 do ids[#ids + 1], tokens[#tokens + 1] = ARGV[i], unpick(">I7", ARGV[i + 1], 2) end
granted.some_out(tokens)
sweep()

for from = 1, #ids, CHUNK do
  local wanted = {}
  for i = from, math.min(#ids, from + CHUNK - 1) do wanted[#wanted + 1] = "\1" .. ids[i] end
  for i, p in ipairs(call("HMGET", RECORDS, unpack(wanted))) do progresses[from + i - 1] = p end
end

-- What there is to know of some stands in their records: the key, the window, the place. Without it
-- they are settled one by one, as they are if it is too much to read at once.
local blobs = {}
do
  local wanted, which, room = {}, {}, AT_ONCE / (q[WIDEST] + 64)
  for i, p in pairs(progresses) do
    local flags, verdict = p and string.byte(p) or 0, string.byte(ARGV[2 * i + 1])
    if mask(flags, KEYED_FLAG) ~= 0 and groups and not groups.retains
      or #wanted < room and (verdict == RELEASE or verdict == RETURN or verdict == ACK and mask(flags, DEDUPED) ~= 0) then
      wanted[#wanted + 1], which[#which + 1] = ids[i], i
    end
  end
  for from = 1, #wanted, CHUNK do
    for i, v in ipairs(call("HMGET", RECORDS, unpack(wanted, from, math.min(#wanted, from + CHUNK - 1)))) do
      blobs[which[from + i - 1]] = v
    end
  end
end

-- Plain acks leave together, and what is given back at once waits again together.
local fields, members, held, windows, touched = {}, {}, {}, {}, {}
local changes, places, expiries, given = {}, {}, {}, 0
local others = false -- may have changed that nobody has touched

local function flush()
  if #members == 0 then return end
  call("ZREM", LEASES, unpack(members))
  if #fields > 0 then call("HDEL", RECORDS, unpack(fields)) end
  if #held > 0 then call("ZREM", MEMBERS, unpack(held)) end
  if #windows > 0 then
    call("ZADD", WINDOWS, unpack(windows))
    use(USE_WINDOWS)
  end
  if given > 0 then call("ZADD", PLACES, unpack(places)) end
  if #changes > 0 then
    call("HSET", RECORDS, unpack(changes))
    use(USE_AGAIN)
  end
  if #expiries > 0 then
    call("ZADD", EXPIRIES, unpack(expiries))
    use(USE_EXPIRIES)
  end
  set(ACKED, q[ACKED] + #members - given)
  set(RARE.RELEASED, q[RARE.RELEASED] + given)
  fields, members, held, windows, changes, places, expiries, given = {}, {}, {}, {}, {}, {}, {}, 0
end

-- give_back is what again does for a record without a key that is due and has a delivery left. One that
-- nothing has happened to has no progress any more.
local function give_back(r)
  members[#members + 1] = member(r)
  r.leased, r.token, r.till, r.by = false, 0, 0, ""
  if r.deliveries == 0 and r.due == r.first and r.reason == "" and not r.history and not r.successor then
    fields[#fields + 1] = "\1" .. r.id
  else
    changes[#changes + 1], changes[#changes + 2] = "\1" .. r.id, progress_of(r)
  end
  places[#places + 1], places[#places + 2] = number(band(r.priority) + r.due), member(r)
  use(bit.lshift(1, r.priority))
  soonest, given = math.min(soonest, r.due), given + 1
  if r.expirein > 0 then
    expiries[#expiries + 1], expiries[#expiries + 2] = number(r.first + r.expirein), member(r)
    ends_at(r.first + r.expirein)
  end
end

local function settle(id, progress, blob, verdict, token, delay, reason)
  if touched[id] or others then
    flush()
    progress, blob = call("HGET", RECORDS, "\1" .. id), nil
  end
  touched[id] = true
  if not progress then return "\0" end
  local flags, _, _, _, deliveries, holds, till = unpick(PROGRESS, progress)
  if flags % 2 == 0 or holds ~= token or till <= now then return "\0" end

  local kind = bit.band(flags, bit.bnot(HISTORY))
  if verdict == ACK and (kind == LEASED or (kind == LEASED + KEYED_FLAG or kind == LEASED + DEDUPED) and blob)
    and not (groups and groups.retains) then
    if kind == LEASED + KEYED_FLAG then
      local r = parse(id, blob, progress)
      held[#held + 1] = groups.let_go(r)
      groups.leave(r)
    elseif kind == LEASED + DEDUPED then
      local over = now + parse(id, blob, progress).dedup
      windows[#windows + 1], windows[#windows + 2] = number(over), id
      ends_at(over)
    end
    members[#members + 1] = string.sub(progress, 2, 7) .. id
    fields[#fields + 1], fields[#fields + 2] = id, "\1" .. id
    return "\1"
  end
  if verdict == RETURN then deliveries = deliveries - 1 end
  if (verdict == RELEASE or verdict == RETURN) and blob and delay == 0 and reason == "" and mask(flags, KEYED_FLAG) == 0
    and not (max_deliveries > 0 and deliveries >= max_deliveries) then
    local r = parse(id, blob, progress)
    if r.keylen == 0 then
      r.attempts, r.deliveries = r.attempts - 1, deliveries
      give_back(r)
      return "\1"
    end
  end
  if groups and groups.ordered() then flush() end -- one that waits again takes others along
  local r = load(id)
  if not r then return "\0" end
  unplace(r)
  others = others or groups and groups.ordered() and (verdict == RETRY or verdict == RELEASE or verdict == RETURN)
  if verdict == ACK then
    count(ACKED)
    local successor = finish(r)
    if groups and groups.retains then groups.retain(r) end
    if r.dedup > 0 then
      call("ZADD", WINDOWS, number(now + r.dedup), id)
      use(USE_WINDOWS)
      ends_at(now + r.dedup)
    end
    start(id, successor)
  elseif verdict == RETRY then
    count(RARE.RETRIED)
    note(r, now, reason)
    again(r, now + delay, reason, now)
  elseif verdict == RELEASE or verdict == RETURN then
    count(RARE.RELEASED)
    r.attempts = r.attempts - 1
    r.deliveries = deliveries
    again(r, delay > 0 and now + delay or r.due, reason, now)
  elseif verdict == BURY then
    if reason ~= "" then r.reason = reason end
    note(r, now, reason)
    die(r, now)
  else
    count(RARE.EXPIRED)
    start(id, finish(r))
  end
  return "\1"
end

local settled = {}
for i, id in ipairs(ids) do
  if groups and i > 1 and groups.given >= LEFT_OVER then break end
  local words = ARGV[2 * i + 1]
  local verdict, token, delay = unpick(VERDICT, words)
  settled[i] = settle(id, progresses[i], blobs[i], verdict, token, delay, string.sub(words, REASON))
end
flush()
notify()
save()
return table.concat(settled)
