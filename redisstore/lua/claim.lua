-- claim leases due records of a queue.                                  R2 R3 R4 R5
--
-- KEYS  1-9  of the queue, see queue.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2    limit    records at most, which bounds the work done here
--       3    bytes    bodies and headers at most, though not before the first record; 0 is no bound
--       4    lease    duration
--       5    by       who asks
--       6    self     "channel queue" of a process that will wait if it gets less than limit, or ""
--       7    poll     longest duration that it waits
-- Returns {now, next, told, id, record, progress, ...}: next is how long until something is
-- claimable by time alone, -1 if nothing will be; told is how long the process may wait, -1 if it
-- was not entered.

local limit, bytes, lease, by, self, poll =
  tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6], tonumber(ARGV[7])
local chunk = bytes > 0 and 32 or 500

ease()
sweep()

local reply, taken, size, stopped = { now, -1, -1 }, 0, 0, false

-- lease_run leases what it may of a run of places, given as members and scores, and returns those
-- that have expired; run.done says how many places are done with.
local function lease_run(run, base)
  local fields, n = {}, 0
  for i = 1, #run, 2 do
    local id = string.sub(run[i], 7)
    fields[i], fields[i + 1] = id, "\1" .. id
  end
  local got = call("HMGET", RECORDS, unpack(fields))
  local changes, leased, left, late = {}, {}, {}, {}
  local token, till, at = q[TOKEN], now + lease, #reply
  local score = number(till)
  for i = 1, #run, 2 do
    local id, blob, was = fields[i], got[i], got[i + 1]
    local seq, stored_seq, first, expirein, dedup, r, _ = (unpick(">I6", run[i]))
    if blob then
      _, stored_seq, first, _, expirein, dedup = unpick(">BI6I6I6I6I6", blob)
      r = was and parse(id, blob, was)
    end
    if stored_seq ~= seq or r and r.leased then
      -- a place without its record is damage, and goes
    elseif expirein > 0 and first + expirein <= now then
      late[#late + 1] = id -- beyond what the sweep did, R13
    else
      if bytes > 0 then
        local keylen, headlen, headsize = unpick(">I2I4I4", blob, 36)
        local more = #blob - BODY + 1 - keylen - headlen + headsize
        if taken > 0 and size + more > bytes then
          stopped = true
          break
        end
        size = size + more
      end
      taken, token = taken + 1, math.max(token + 1, now * 1000)
      local flags, attempts, deliveries, reason = dedup > 0 and 5 or 1, 1, 1, ""
      if r then
        attempts, deliveries, reason = r.attempts + 1, r.deliveries + 1, r.reason
        if r.successor then flags = flags + 2 end
      end
      local progress = pack(PROGRESS, flags, seq, tonumber(run[i + 1]) - base, attempts, deliveries, token, till, #by)
        .. by .. reason
      changes[n + 1], changes[n + 2] = fields[i + 1], progress
      leased[n + 1], leased[n + 2] = score, run[i]
      n = n + 2
      if expirein > 0 then left[#left + 1] = run[i] end
      reply[at + 1], reply[at + 2], reply[at + 3] = id, blob, progress
      at = at + 3
    end
    run.done = (i + 1) / 2
  end
  if #left > 0 then call("ZREM", EXPIRIES, unpack(left)) end
  if n > 0 then
    call("HSET", RECORDS, unpack(changes))
    call("ZADD", LEASES, unpack(leased))
    set(TOKEN, token)
    set(CLAIMED, q[CLAIMED] + n / 2)
    use(USE_LEASES)
    if till < ending then ending = till end
  end
  return late
end

local head -- due time of the first place left over, math.huge if there is none
local function claim_priority(priority)
  local base = band(priority)
  local before = bit.lshift(bit.rshift(bit.band(q[USES], 1023), priority + 1), priority + 1)
  while taken < limit and not stopped do
    local want = math.min(limit - taken, chunk)
    local run = call("ZRANGE", PLACES, number(base), number(base + now), "BYSCORE", "LIMIT", 0, want, "WITHSCORES")
    if #run == 0 then break end
    local rank = before > 0 and call("ZCOUNT", PLACES, "-inf", "(" .. number(base)) or 0
    run.done = 0
    local late = lease_run(run, base)
    if run.done > 0 then call("ZREMRANGEBYRANK", PLACES, rank, rank + run.done - 1) end
    for _, id in ipairs(late) do find(id) end
    if #run < 2 * want then break end
  end
  local first = call("ZRANGE", PLACES, number(base), number(base + BAND - 1), "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
  if first[1] then
    head = math.min(head, tonumber(first[2]) - base)
  else
    unuse(bit.lshift(1, priority))
  end
end

local next_at = math.huge
if paused == 0 then -- R15
  head = math.huge
  for priority = 9, 0, -1 do
    if uses(bit.lshift(1, priority)) then claim_priority(priority) end
  end
  next_at = stopped and now or math.min(head, ending)
end
if taken == 0 then count(EMPTY) end

local wait = math.max(0, next_at - now)
if wait < math.huge then reply[2] = wait end
if self ~= "" and taken < limit and wait > 0 then
  reply[3] = enlist(self, wait, poll)
  if reply[3] > wait and reply[2] >= 0 and wait < poll then reply[2] = reply[3] end
elseif uses(USE_WAITERS) then
  if self ~= "" then call("ZREM", WAITERS, self) end
  if paused == 0 then
    if wait == 0 then wake() elseif taken > 0 and wait < math.huge then heed(wait, true) end
  end
end
save()
return reply
