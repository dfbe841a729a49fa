-- claim_fast.lua is the way of most calls: records of one priority, none of which expires. Whatever
-- else there is falls through to claim.lua, with nothing changed. Beside those of claim.lua it returns
-- {now, next, told, token of the first record, id, record, ...} if nothing has happened to any yet.

do
  local used, self, limit, bytes = in_use, ARGV[6], tonumber(ARGV[2]), tonumber(ARGV[3])
  local again = mask(used, USE_AGAIN) ~= 0
  local found, base = nil, 0
  local large = bytes > 0 and bytes < limit * (widest + 64) and limit > 32 -- in several steps
  if quiet and paused == 0 and ARGV[9] == "" and not large then
    for priority = 9, 0, -1 do
      if mask(used, 1023) == lshift(1, priority) then base, found = (9 - priority) * BAND, {} end
    end
  end
  if found then
    found = call("ZRANGE", PLACES, string.format("%d", base), string.format("%d", base + now),
      "BYSCORE", "LIMIT", 0, limit + 1)
  end
  local more = found and #found > limit
  local waits = found and self ~= "" and #found < limit
  if waits then -- see enlist.lua
    if not server then
      local time = call("TIME")
      server = time[1] * 1000 + math.floor(time[2] / 1000)
    end
    local others = call("ZRANGE", WAITERS, string.format("%d", server - 20), "+inf", "BYSCORE", "LIMIT", 0, 2)
    if others[2] or others[1] and others[1] ~= self then found = nil end
  elseif mask(used, USE_WAITERS) ~= 0 then
    found = nil
  end

  local n = found and math.min(#found, limit) or 0
  local reply = { now, 0, -1, again and 0 or last_token + 1 }
  if n > 0 then
    local till, by = now + tonumber(ARGV[4]), ARGV[5]
    local token = math.max(last_token + 1, micros) - 1
    local score, holder, first = string.format("%d", till), pack(">I6I2", till, #by) .. by, "\0\0\0\1\0\0\0\1"
    local wanted, changes, leases, size = {}, {}, {}, 0
    local each = again and 2 or 1
    for i = 1, n do
      local id = sub(found[i], 7)
      wanted[each * i] = "\1" .. id
      wanted[each * (i - 1) + 1] = id
    end
    local got = call("HMGET", RECORDS, unpack(wanted))
    for i = 1, n do
      local id, blob, was, m = wanted[each * (i - 1) + 1], got[each * (i - 1) + 1], again and got[2 * i], found[i]
      if not blob or sub(blob, 2, 7) ~= sub(m, 1, 6) or sub(blob, 20, 25) ~= "\0\0\0\0\0\0" -- it expires
        or was and string.byte(was) % 2 == 1 then
        found = nil
        break
      end
      local flags, attempts, tail = sub(blob, 26, 31) == "\0\0\0\0\0\0" and "\1" or "\5", first, ""
      if was then
        local tried, delivered = unpick(">I4I4", was, 14)
        flags = string.char(bit.bor(string.byte(flags), string.byte(was)))
        attempts, tail = pack(">I4I4", tried + 1, delivered + 1), sub(was, 37 + unpick(">I2", was, 35))
      end
      size = size + #blob
      -- Sequence and due time stand in both forms at the same place.
      local progress = flags .. sub(was or blob, 2, 13) .. attempts .. pack(">I7", token + i) .. holder .. tail
      changes[2 * i - 1], changes[2 * i] = "\1" .. id, progress
      leases[2 * i - 1], leases[2 * i] = score, m
      local at = (each + 1) * (i - 1) + 5
      reply[at], reply[at + 1] = id, blob
      if again then reply[at + 2] = progress end
    end
    if bytes > 0 and size > bytes then found = nil end
    if found then
      call("ZREMRANGEBYRANK", PLACES, 0, n - 1)
      call("HSET", RECORDS, unpack(changes))
      call("ZADD", LEASES, unpack(leases))
      used, soon = bit.bor(used, USE_LEASES), math.min(soon, till)
      if not again then reply[4] = token + 1 end
      last_token = token + n
    end
  end
  if found then
    if n == 0 then call("HDEL", META, "-") end -- a full server lets that pass and what follows, see ease
    if not more then
      local place = call("ZRANGE", PLACES, 0, 0, "WITHSCORES")[2]
      local ends = mask(used, USE_LEASES) ~= 0 and call("ZRANGE", LEASES, 0, 0, "WITHSCORES")[2]
      local wait = math.max(0, math.min(place and tonumber(place) - base - now or math.huge, ends and tonumber(ends) - now or math.huge))
      reply[2] = wait < math.huge and wait or -1
      if not place then used = mask(used, bit.bnot(1023 + USE_AGAIN)) end
      if waits and wait > 0 then
        if server % 8 == 0 then call("ZREMRANGEBYSCORE", WAITERS, "-inf", string.format("%d", server - 1000)) end
        reply[3] = math.min(wait, tonumber(ARGV[7]))
        call("ZADD", WAITERS, string.format("%d", server + reply[3]), self)
        used = bit.bor(used, USE_WAITERS)
      end
    end
    local _, _, _, _, _, _, enqueued, claimed, acked, wakeups, empty = unpick(HOT, hot)
    call("HSET", META, "s", pack(HOT, last_seq, last_token, last_clock, used, soon, widest,
      enqueued, claimed + n, acked, wakeups, n == 0 and empty + 1 or empty) .. sub(hot, HOT_SIZE + 1))
    return reply
  end
end
