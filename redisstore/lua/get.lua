-- get returns the record that an id means.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2    id       of a record
-- Returns {now, id, record, progress, instant of death}, and {now} if there is none.

ease()
granted.all_out()
sweep()

local id = ARGV[2]
local r = find(id)
if r then return leave(row({ now }, r)) end
local m, value = newest(id)
return leave(value and finished_row({ now }, m, value) or { now })
