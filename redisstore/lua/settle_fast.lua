-- settle_fast.lua is the way of most calls: acks of leases that are held, of records without a
-- successor and a dedup window. Whatever else there is falls through to settle.lua, with nothing
-- changed. Beside those of settle.lua it returns "", all are settled.

do
  if quiet and #ARGV > 1 then
    local n, wanted = 0, {}
    for i = 2, #ARGV, 2 do
      n = n + 1
      wanted[n] = "\1" .. ARGV[i]
    end
    local fields, members, seen, all, live = {}, {}, {}, true, nil
    for i, progress in ipairs(call("HMGET", RECORDS, unpack(wanted))) do
      local id, words = ARGV[2 * i], ARGV[2 * i + 1]
      all = progress and not seen[id] and string.byte(words) == 1 and mask(string.byte(progress), 239) == 1
        and sub(progress, 22, 28) == sub(words, 2, 8)
      if all then
        local till = sub(progress, 29, 34)
        all = till == live or unpick(">I6", till) > now
        live = till
      end
      if not all then break end
      seen[id] = true
      fields[2 * i - 1], fields[2 * i] = id, wanted[i]
      members[i] = sub(progress, 2, 7) .. id
    end
    if all then
      call("ZREM", LEASES, unpack(members))
      call("HDEL", RECORDS, unpack(fields))
      local _, _, _, _, _, _, enqueued, claimed, acked, wakeups, empty = unpick(HOT, hot)
      call("HSET", META, "s", pack(HOT, last_seq, last_token, last_clock, in_use, soon, widest,
        enqueued, claimed, acked + n, wakeups, empty) .. sub(hot, HOT_SIZE + 1))
      return ""
    end
  end
end
