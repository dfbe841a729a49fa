-- shard_adopt takes in a finished record of another shard, as the latest that arrived.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now     "", no time passes
--       2     id      of the record
--       3     value   as it is stored there
-- Returns 1.

ease()
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
