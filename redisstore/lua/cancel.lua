-- cancel removes a live record and its successor.                       R10
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2    id       of a record
--       3    running  1 if a leased record goes too, else 0
-- Returns "ok", "leased", "dead", "done" or "none".

ease()
granted.all_out()
sweep()

local r = find(ARGV[2])
if not r then return leave(finished_word(ARGV[2])) end
if r.leased and ARGV[3] == "0" then return leave("leased") end
unplace(r)
forget(r)
count(RARE.CANCELED)
return leave("ok")
