-- settle ends leases of one queue, in order.                            R5 R7
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2... id       of a record
--            verdict  1 ack, 2 retry, 3 release, 4 bury, 5 expire; the token; the delay; the reason
-- Returns a string with a byte for every record: 1 if it is settled, 0 if the lease was lost. Those of the
-- last records are missing if too many were given back for one script: nothing was done about them.

local VERDICT, REASON = ">BI7I6", 15
local ACK, RETRY, RELEASE, BURY = 1, 2, 3, 4
local CHUNK = 2000

ease()
local ids, tokens, progresses = {}, {}, {}
for i = 2, #ARGV, 2 do ids[#ids + 1], tokens[#tokens + 1] = ARGV[i], unpick(">I7", ARGV[i + 1], 2) end
granted.separate(nil, tokens)
sweep()

for from = 1, #ids, CHUNK do
  local wanted = {}
  for i = from, math.min(#ids, from + CHUNK - 1) do wanted[#wanted + 1] = "\1" .. ids[i] end
  for i, p in ipairs(call("HMGET", RECORDS, unpack(wanted))) do progresses[from + i - 1] = p end
end

-- The keys of those that have one stand in their records.
local blobs = {}
if groups and not groups.retains then
  local wanted, which = {}, {}
  for i, p in pairs(progresses) do
    if p and bit.band(string.byte(p), KEYED_FLAG) ~= 0 then wanted[#wanted + 1], which[#which + 1] = ids[i], i end
  end
  for from = 1, #wanted, CHUNK do
    for i, v in ipairs(call("HMGET", RECORDS, unpack(wanted, from, math.min(#wanted, from + CHUNK - 1)))) do
      blobs[which[from + i - 1]] = v
    end
  end
end

-- Plain acks leave together.
local fields, members, held, touched = {}, {}, {}, {}
local others = false -- may have changed that nobody has touched

local function flush()
  if #members == 0 then return end
  call("ZREM", LEASES, unpack(members))
  call("HDEL", RECORDS, unpack(fields))
  if #held > 0 then call("ZREM", MEMBERS, unpack(held)) end
  set(ACKED, q[ACKED] + #members)
  fields, members, held = {}, {}, {}
end

local function settle(id, progress, blob, verdict, token, delay, reason)
  if touched[id] or others then
    flush()
    progress, blob = call("HGET", RECORDS, "\1" .. id), nil
  end
  touched[id] = true
  if not progress then return "\0" end
  local flags, _, _, _, _, holds, till = unpick(PROGRESS, progress)
  if flags % 2 == 0 or holds ~= token or till <= now then return "\0" end

  local kind = bit.band(flags, bit.bnot(HISTORY))
  if verdict == ACK and (kind == LEASED or kind == LEASED + KEYED_FLAG and blob) and not (groups and groups.retains) then
    if kind > LEASED then
      local r = parse(id, blob, progress)
      held[#held + 1] = groups.let_go(r)
      groups.leave(r)
    end
    local n = #fields
    members[n / 2 + 1] = string.sub(progress, 2, 7) .. id
    fields[n + 1], fields[n + 2] = id, "\1" .. id
    return "\1"
  end
  if groups and groups.ordered() then flush() end -- one that waits again takes others along
  local r = load(id)
  if not r then return "\0" end
  unplace(r)
  others = others or groups and groups.ordered() and (verdict == RETRY or verdict == RELEASE)
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
  elseif verdict == RELEASE then
    count(RARE.RELEASED)
    r.attempts = r.attempts - 1
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
