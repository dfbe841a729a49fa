-- settle ends leases of one queue, in order.                            R5 R7
--
-- KEYS  1-18  of the queue, see queue.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2... id       of a record
--            verdict  1 ack, 2 retry, 3 release, 4 bury, 5 expire; the token; the delay; the reason
-- Returns a string with a byte for every record: 1 if it is settled, 0 if the lease was lost. Those of the
-- last records are missing if too many were given back for one script: nothing was done about them.

local VERDICT, REASON = ">BI7I6", 15
local ACK, RETRY, RELEASE, BURY = 1, 2, 3, 4
local CHUNK = 2000

ease()
sweep()

local ids, progresses = {}, {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
for from = 1, #ids, CHUNK do
  local wanted = {}
  for i = from, math.min(#ids, from + CHUNK - 1) do wanted[#wanted + 1] = "\1" .. ids[i] end
  for i, p in ipairs(call("HMGET", RECORDS, unpack(wanted))) do progresses[from + i - 1] = p end
end

-- Plain acks leave together.
local fields, members, touched = {}, {}, {}
local ordered = groups and groups.ordered()

local function flush()
  if #members == 0 then return end
  call("ZREM", LEASES, unpack(members))
  call("HDEL", RECORDS, unpack(fields))
  set(ACKED, q[ACKED] + #members)
  fields, members = {}, {}
end

local function settle(id, progress, verdict, token, delay, reason)
  if touched[id] or ordered then -- one that waits again takes others along
    flush()
    progress = call("HGET", RECORDS, "\1" .. id)
  end
  touched[id] = true
  if not progress then return "\0" end
  local flags, _, _, _, _, holds, till = unpick(PROGRESS, progress)
  if flags % 2 == 0 or holds ~= token or till <= now then return "\0" end

  if verdict == ACK and (flags == LEASED or flags == LEASED + HISTORY) and not (groups and groups.retains) then
    local n = #fields
    members[n / 2 + 1] = string.sub(progress, 2, 7) .. id
    fields[n + 1], fields[n + 2] = id, "\1" .. id
    return "\1"
  end
  local r = load(id)
  if not r then return "\0" end
  unplace(r)
  if verdict == ACK then
    count(ACKED)
    local successor = finish(r)
    if groups and groups.retains then groups.retain(r) end
    if r.dedup > 0 then
      call("ZADD", WINDOWS, number(now + r.dedup), id)
      use(USE_WINDOWS)
    end
    start(id, successor)
  elseif verdict == RETRY then
    count(RETRIED)
    note(r, now, reason)
    again(r, now + delay, reason, now)
  elseif verdict == RELEASE then
    count(RELEASED)
    r.attempts = r.attempts - 1
    again(r, delay > 0 and now + delay or r.due, reason, now)
  elseif verdict == BURY then
    if reason ~= "" then r.reason = reason end
    note(r, now, reason)
    die(r, now)
  else
    count(EXPIRED)
    start(id, finish(r))
  end
  return "\1"
end

local settled = {}
for i, id in ipairs(ids) do
  if groups and i > 1 and groups.given >= LEFT_OVER then break end
  local words = ARGV[2 * i + 1]
  local verdict, token, delay = unpick(VERDICT, words)
  settled[i] = settle(id, progresses[i], verdict, token, delay, string.sub(words, REASON))
end
flush()
notify()
save()
return table.concat(settled)
