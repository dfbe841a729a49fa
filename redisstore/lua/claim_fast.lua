-- claim_fast.lua is the way of most calls: records of one priority, none of which expires. Whatever
-- else there is falls through to claim.lua, with nothing changed. Records that nothing has happened
-- to are leased by grants, see state.lua. Beside those of claim.lua it returns
-- {now, next, told, token of the first record, id, record, ...} if nothing has happened to any yet, and
-- {now, next, told, - token of the first record, id, record, progress, ...} if something may have: then
-- the progress is "" of those that nothing has happened to.

do
  local STRAGGLERS = 256 -- in grants: more are not taken out to make room, these leases have an end of their own
  local NEITHER = "\0\0\0\0\0\0\0\0\0\0\0\0"
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
  local room = MOST_GRANTS - #grants / GRANT_SIZE
  local few = n == 1 or n < 8 and room <= MOST_GRANTS / 2 -- or small claims would take the room of large ones
  if not few and n > room * GRANT_MOST then
    local held = 0
    for at = 1, #grants, GRANT_SIZE do
      local _, _, open = unpick(GRANT, grants, at)
      while open > 0 and held <= STRAGGLERS do
        held, open = held + open % 2, math.floor(open / 2)
      end
    end
    if held > STRAGGLERS then few = true else found = nil end -- to claim.lua, which takes out those few
  end
  local reply = { now, 0, -1, 0 }
  if found and n > 0 then
    local till, by = now + tonumber(ARGV[4]), ARGV[5]
    local token = math.max(last_token + 1, micros) - 1
    reply[4] = again and -token - 1 or token + 1
    local each, ids, size = again and 2 or 1, {}, 0
    for i = 1, n do ids[i] = sub(found[i], 7) end
    local wanted = again and {} or ids
    for i = 1, again and n or 0 do wanted[2 * i - 1], wanted[2 * i] = ids[i], "\1" .. ids[i] end
    local got = call("HMGET", RECORDS, unpack(wanted))

    local heads, width, even = {}, #ids[1], true
    local changes, leases, alone = {}, {}, {} -- of those that get a lease of their own
    local score, holder = string.format("%d", till), pack(">I6I2", till, #by) .. by -- as in a progress
    for i = 1, n do
      local id, blob, was, m = ids[i], got[each * (i - 1) + 1], again and got[2 * i], found[i]
      local head = blob and sub(blob, 2, 13) -- sequence and due time
      local ends = blob and sub(blob, 20, 31) -- expiry and window
      if not blob or sub(head, 1, 6) ~= sub(m, 1, 6) or ends ~= NEITHER and sub(ends, 1, 6) ~= "\0\0\0\0\0\0"
        or was and string.byte(was) % 2 == 1 then
        found = nil
        break
      end
      local progress = ""
      if was or few or ends ~= NEITHER then
        local flags, tried, delivered, tail = ends == NEITHER and 1 or 5, 0, 0, ""
        if was then
          tried, delivered = unpick(">I4I4", was, 14)
          flags, head, tail = bit.bor(flags, string.byte(was)), sub(was, 2, 13), sub(was, 37 + unpick(">I2", was, 35))
        end
        progress = string.char(flags) .. head .. pack(">I4I4I7", tried + 1, delivered + 1, token + i) .. holder .. tail
        changes[#changes + 1], changes[#changes + 2] = "\1" .. id, progress
        leases[#leases + 1], leases[#leases + 2] = score, m
        alone[i] = true
      end
      size, heads[i] = size + #blob, head
      if #id ~= width then width, even = math.max(#id, width), false end
      local at = (each + 1) * (i - 1) + 5
      reply[at], reply[at + 1] = id, blob
      if again then reply[at + 2] = progress end
    end
    if bytes > 0 and size > bytes then found = nil end

    if found then
      if not even then
        for i = 1, n do ids[i] = ids[i] .. string.rep("\0", width - #ids[i]) end
      end
      for from = 1, n, GRANT_MOST do
        local to = math.min(from + GRANT_MOST - 1, n)
        local open = 2 ^ (to - from + 1) - 1
        for i = from, #leases > 0 and to or 0 do
          if alone[i] then open = open - 2 ^ (i - from) end
        end
        if open > 0 then
          local first = pack(">I7", token + from)
          changes[#changes + 1] = "\4" .. first
          changes[#changes + 1] = holder .. pack(">I2", width) .. table.concat(heads, "", from, to) .. table.concat(ids, "", from, to)
          grants = grants .. first .. pack(">I6I6", till, open)
        end
      end
      call("ZREMRANGEBYRANK", PLACES, 0, n - 1)
      call("HSET", RECORDS, unpack(changes))
      if #leases > 0 then
        call("ZADD", LEASES, unpack(leases))
        used = bit.bor(used, USE_LEASES)
      end
      soon, last_token = math.min(soon, till), token + n
    end
  end
  if found then
    if n == 0 then call("HDEL", META, "-") end -- a full server lets that pass and what follows, see ease
    if not more then
      local place = call("ZRANGE", PLACES, 0, 0, "WITHSCORES")[2]
      local ends = mask(used, USE_LEASES) ~= 0 and call("ZRANGE", LEASES, 0, 0, "WITHSCORES")[2]
      local wait = math.min(place and tonumber(place) - base - now or math.huge, ends and tonumber(ends) - now or math.huge)
      for at = 8, #grants, GRANT_SIZE do wait = math.min(wait, unpick(">I6", grants, at) - now) end
      wait = math.max(0, wait)
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
    local numbers = pack(HOT, last_seq, last_token, last_clock, used, soon, widest,
      enqueued, claimed + n, acked, wakeups, n == 0 and empty + 1 or empty) .. sub(hot, HOT_SIZE + 1)
    if grants == (stored[4] or "") then call("HSET", META, "s", numbers) else call("HSET", META, "s", numbers, "g", grants) end
    return reply
  end
end
