-- shard_free notes that no live record of a shard belongs elsewhere, and from when on no dedup window does:
-- those that are open were begun by records that did.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now     instant, "" for the server's clock
--       2     layout  that this is so under
-- Returns {now, instant}: nothing of the shard belongs elsewhere from that instant on.

local noted, till = string.match(call("HGET", META, "l") or "", "^(.*) (%d+)$")
if noted ~= ARGV[2] then
  till = string.format("%d", call("ZRANGE", WINDOWS, -1, -1, "WITHSCORES")[2] or 0)
  call("HSET", META, "l", ARGV[2] .. " " .. till)
end
return { now, tonumber(till) }
