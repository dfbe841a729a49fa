-- shard_scan reads which keys and ids a shard has, a step at a time. It changes nothing.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now     "", no time passes
--       2     what    "keys", which have waiting or leased records, or "records"
--       3     cursor  of the step before, "0" begins
--       4     limit   entries to look at, about
-- Returns {cursor, kind, name, key, ...}: cursor is "0" at the end; kind is "key", "live" of an id that lives,
-- or "finished" of a dead or done record, whose name is its member.

local of_keys = ARGV[2] == "keys"
local page = call("HSCAN", of_keys and KEYS[10] or RECORDS, ARGV[3], "COUNT", ARGV[4])
local reply = { page[1] }
for i = 1, #page[2], 2 do
  local name, value = page[2][i], page[2][i + 1]
  local first, kind = string.byte(name), nil
  if of_keys then
    kind, value = "key", nil
  elseif first == 3 then
    kind, name, value = "finished", sub(name, 2), sub(value, 9 + unpick(">I2", value, 7))
  elseif first > 4 then -- not a grant
    kind = "live"
  end
  if kind then
    local n = #reply
    reply[n + 1], reply[n + 2] = kind, name
    reply[n + 3] = value and sub(value, 46, 45 + unpick(">I2", value, 36)) or name
  end
end
return reply
