-- cancel_fast.lua is the way of most calls: a waiting record that does not expire, of a queue without
-- keys, bounds and retention. Whatever else there is falls through to cancel.lua, with nothing changed.

do
  local id, none = ARGV[2], "\0\0\0\0\0\0"
  if quiet and mask(in_use, USE_WHOLE) == 0 then
    local stored = call("HMGET", RECORDS, id, "\1" .. id)
    local blob, progress = stored[1], stored[2]
    if blob and sub(blob, 20, 25) == none and sub(blob, 36, 37) == "\0\0" -- no expiry, no key
      and not (progress and string.byte(progress) % 4 ~= 0) -- nor a lease, nor a successor
      and call("ZREM", PLACES, sub(blob, 2, 7) .. id) == 1 then
      call("HDEL", RECORDS, id, "\1" .. id)
      local _, _, _, _, _, _, enqueued, claimed, acked, wakeups, empty = unpick(HOT, hot)
      local at = HOT_SIZE + 9 * 7 -- where canceled stands, see queue.lua
      call("HSET", META, "s", pack(HOT, last_seq, last_token, last_clock, in_use, soon, widest, enqueued, claimed, acked,
        wakeups, empty) .. sub(hot, HOT_SIZE + 1, at) .. pack(">I7", unpick(">I7", hot, at + 1) + 1) .. sub(hot, at + 8))
      return "ok"
    end
  end
end
