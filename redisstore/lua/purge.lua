-- purge removes waiting or finished records and their successors.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now      instant, "" for the server's clock
--       2-10  filter   see select.lua
-- Returns {count, more, at, seq} as list does.

ease()
granted.all_out()
sweep()

local found = {}
local more, last = select(function(m, blob, progress, value)
  found[#found + 1] = value and { m } or parse(string.sub(m, 7), blob, progress)
end)
for _, r in ipairs(found) do
  count(RARE.PURGED)
  if state == "dead" or state == "done" then
    remove_finished(r[1])
  else
    unplace(r)
    forget(r)
  end
end
return leave({ #found, more and 1 or 0, last[1], last[2] })
