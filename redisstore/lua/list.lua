-- list returns records of one state in the order of their position.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now      instant, "" for the server's clock
--       2-10  filter   see select.lua
-- Returns {now, more, at, seq, id, record, progress, instant of death, ...}: more is 1 or 0, at and
-- seq are the position of the last record looked at, -1 and 0 if there was none.

ease()
granted.all_out()
sweep()

local reply = { now, 0, -1, 0 }
local more, last = select(function(m, blob, progress, value)
  if value then return finished_row(reply, m, value) end
  row(reply, parse(string.sub(m, 7), blob, progress))
end)
reply[2], reply[3], reply[4] = more and 1 or 0, last[1], last[2]
return leave(reply)
