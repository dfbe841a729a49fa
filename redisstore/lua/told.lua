-- told notes that somebody has been told of the death of records.       R19
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now      "", no time passes
--       2...  member   of a dead record
-- Returns how many nobody had been told of.

ease()

local n = 0
for i = 2, #ARGV do
  local m = ARGV[i]
  local value = call("ZREM", UNTOLD, m) == 1 and call("HGET", RECORDS, "\3" .. m)
  if value then
    local finished, progress, blob = exhume(value)
    local r = parse(string.sub(m, 7), blob, progress)
    r.untold = false
    call("HSET", RECORDS, "\3" .. m, bury_blob(r, finished))
    n = n + 1
  end
end
save()
return n
