-- keys lists keys of a queue.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now      instant, "" for the server's clock
--       2     key      only this one, "" is any
--       3     order    0 by name, 1 largest first, 2 oldest head first
--       4     after    by name only: behind this one
--       5     limit    keys at most
-- Returns {key, waiting, leased, head, ...}: head is -1 if nothing waits.

ease()
sweep()
groups.flush()

local order, limit, names = ARGV[3], tonumber(ARGV[5]), {}
if ARGV[2] ~= "" then
  names = { ARGV[2] }
elseif order == "1" then
  names = call("ZRANGE", SIZES, 0, limit - 1)
elseif order == "2" then
  names = call("ZRANGE", HEADS, 0, limit - 1)
else
  local from = ARGV[4] == "" and "-" or "(" .. ARGV[4] .. "\1"
  while #names < limit do
    local m = call("ZRANGE", MEMBERS, from, "+", "BYLEX", "LIMIT", 0, 1)[1]
    if not m then break end
    names[#names + 1] = string.match(m, "^(%Z*)")
    from = "(" .. names[#names] .. "\1"
  end
end
local reply = {}
for _, key in ipairs(names) do
  local g = group(key)
  if g.served and not (order == "2" and g.waiting == 0) then
    reply[#reply + 1] = key
    reply[#reply + 1] = g.waiting
    reply[#reply + 1] = g.leased
    reply[#reply + 1] = tonumber(call("ZSCORE", HEADS, key) or -1)
  end
end
notify()
save()
return reply
