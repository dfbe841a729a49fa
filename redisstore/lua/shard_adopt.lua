-- shard_adopt takes in a finished record of another shard, as the latest that arrived.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now     "", no time passes
--       2     id      of the record
--       3     value   as it is stored there
-- Returns 1. A record that was taken in before, by another process or in an earlier try, is not taken in again:
-- it is the same but for its sequence and whether anybody was told of it.

ease()
local function nameless(value)
  local finished, progress, blob = exhume(value)
  return finished .. sub(progress, 8) .. sub(blob, 1, 1) .. sub(blob, 8)
end
local names = call("ZREVRANGEBYLEX", NAMES, "(" .. ARGV[2] .. "\1", "[" .. ARGV[2] .. "\0", "LIMIT", 0, 5000)
for _, name in ipairs(names) do
  local value = call("HGET", RECORDS, "\3" .. sub(name, #ARGV[2] + 2) .. ARGV[2])
  if value and nameless(value) == nameless(ARGV[3]) then return 1 end
end

local finished, progress, blob = exhume(ARGV[3])
set(SEQ, q[SEQ] + 1)
count(ENQUEUED)
local r = parse(ARGV[2], sub(blob, 1, 1) .. pack(">I6", q[SEQ]) .. sub(blob, 8), progress)
local flags = string.byte(progress)
r.done, r.untold = mask(flags, DONE_FLAG) ~= 0, mask(flags, UNTOLD_FLAG) ~= 0
local m = keep(r.done and DONE or DEAD, r, finished)
if r.untold then call("ZADD", UNTOLD, number(finished), m) end
if r.done then
  use(USE_DONE)
  groups.adopt(r)
end
use(USE_WHOLE)
save()
return 1
