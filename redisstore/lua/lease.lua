-- lease.lua hands out what a claim finds.                                R3 R4 R5
--
-- ARGV  2    limit    records at most, which bounds the work done here
--       3    bytes    bodies and headers at most, though not before the first record; 0 is no bound
--       4    lease    duration
--       5    by       who asks

local limit, bytes, lease, by = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local chunk = bytes > 0 and math.max(32, math.min(500, math.floor(bytes / (q[WIDEST] + 64)))) or 500
local reply, taken, size, stopped = { now, -1, -1, 0 }, 0, 0, false

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
      taken, token = taken + 1, math.max(token + 1, micros)
      local flags, attempts, deliveries, reason = dedup > 0 and LEASED + DEDUPED or LEASED, 1, 1, ""
      if r then
        attempts, deliveries, reason = r.attempts + 1, r.deliveries + 1, tail(r)
        if r.successor then flags = flags + FOLLOWED end
        if r.history then flags = flags + HISTORY end
      end
      if groups and unpick(">I2", blob, 36) > 0 then flags = flags + KEYED_FLAG end
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
    ends_at(till)
  end
  run.leased = leased
  return late
end

-- work_off drops what has expired beyond what the sweep did, but not all of a great number.    R13
local expired = 0
local function work_off(late)
  for _, id in ipairs(late) do find(id) end
  expired = expired + #late
  if expired >= LEFT_OVER then stopped = true end
end

-- claim_keyless leases records of one priority without a key, those before a turn if there is one,
-- and returns the due time of the first place left over, math.huge if there is none.
local function claim_keyless(priority, since, turn)
  local base = band(priority)
  local before = bit.lshift(bit.rshift(bit.band(q[USES], 1023), priority + 1), priority + 1)
  while taken < limit and not stopped do
    local want = math.min(limit - taken, chunk)
    local run = call("ZRANGE", PLACES, number(base), number(base + (since or now)), "BYSCORE", "LIMIT", 0, want, "WITHSCORES")
    local found = #run
    if since then
      while #run > 0 and tonumber(run[#run]) == base + since and unpick(">I6", run[#run - 1]) > turn do
        run[#run], run[#run - 1] = nil, nil
      end
    end
    if #run == 0 then break end
    local rank = before > 0 and call("ZCOUNT", PLACES, "-inf", "(" .. number(base)) or 0
    run.done = 0
    local late = lease_run(run, base)
    if run.done > 0 then call("ZREMRANGEBYRANK", PLACES, rank, rank + run.done - 1) end
    work_off(late)
    if found < 2 * want or #run < found then break end
  end
  local first = call("ZRANGE", PLACES, number(base), number(base + BAND - 1), "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
  if first[1] then return tonumber(first[2]) - base end
  unuse(bit.lshift(1, priority))
  return math.huge
end
