-- enqueue_fast.lua is the way of most calls: all records are new, none expires, and whom it concerns
-- is told at once. Whatever else there is falls through to enqueue.lua, with nothing changed. Beside
-- those of enqueue.lua it returns {now, "", sequence of the first record}.

do
  local tell = mask(in_use, USE_WAITERS) ~= 0 and paused == 0
  if quiet and not asks and expire_in == 0 and #ARGV > 2 and not (tell and mask(in_use, USE_PARTS) ~= 0) then
    local n, ids, fresh = 0, {}, true
    for i = 3, #ARGV, 2 do
      n = n + 1
      ids[n] = ARGV[i]
    end
    for _, old in ipairs(call("HMGET", RECORDS, unpack(ids))) do fresh = fresh and not old end
    if mask(in_use, USE_WINDOWS) ~= 0 then
      for _, ends in ipairs(call("ZMSCORE", WINDOWS, unpack(ids))) do fresh = fresh and not ends end
    end

    local fields, places, seen, terms, used, latest = {}, {}, {}, ARGV[2], in_use, 0
    local head, times, score, last
    for i = 1, n do
      local id, rest, words = ids[i], ARGV[2 * i + 2], sub(terms, 15 * i - 14, 15 * i)
      fresh = fresh and not seen[id]
      if words ~= last then
        local priority, _, delayed, due, expirein = unpick(">BBBI6I6", words)
        if delayed == 1 then due = now + due end
        fresh, latest, last = fresh and expirein == 0, math.max(latest, due), words
        head, times, score = string.char(priority), pack(">I6I6", due, now), string.format("%d", (9 - priority) * BAND + due)
        used = bit.bor(used, lshift(1, priority))
      end
      if not fresh then break end
      seen[id] = true
      local number = pack(">I6", last_seq + i)
      fields[2 * i - 1], fields[2 * i] = id, head .. number .. times .. rest
      places[2 * i - 1], places[2 * i] = score, number .. id
      if #rest > widest then widest = #rest end
    end

    if fresh and not (tell and latest > now) then
      call("HSET", RECORDS, unpack(fields))
      call("ZADD", PLACES, unpack(places))
      local _, _, _, _, _, _, enqueued, claimed, acked, wakeups, empty = unpick(HOT, hot)
      for _ = 1, tell and 100 or 0 do -- see wake.lua
        local m = call("ZREVRANGEBYSCORE", WAITERS, "(4503599627370496", "-inf", "LIMIT", 0, 1)[1]
        if not m then
          used = mask(used, bit.bnot(USE_WAITERS))
          break
        end
        call("ZREM", WAITERS, m)
        local channel, queue = string.match(m, "^(%S+) (.+)$")
        if channel and call("PUBLISH", channel, string.format("ready %d.%d %s", wakeups, server, queue)) > 0 then
          wakeups = wakeups + 1
          break
        end
      end
      call("HSET", META, "s", pack(HOT, last_seq + n, last_token, last_clock, used, soon, widest,
        enqueued + n, claimed, acked, wakeups, empty) .. sub(hot, HOT_SIZE + 1))
      return { now, "", last_seq + 1 }
    end
  end
end
