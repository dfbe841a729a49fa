-- edit changes a waiting record in place.                               R10
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now       instant, "" for the server's clock
--       2    id        of a record
--       3    due       "" leaves it, "=" and an instant, or "+" and a duration
--       4    priority  "" leaves it
--       5    body      "" leaves it, else "=" and the body
--       6    headers   "" leaves them, else "=" and the encoded headers
--       7    size      of the names and values of those headers
-- Returns {"ok", now, id, record, progress, -1} as it is then, {"leased"}, {"dead"}, {"done"},
-- {"none"}, {"expired"}, or {"ordered"} where priority is refused.

call("ZADD", WAITERS, "XX", 0, "-") -- refused at maxmemory, before anything is changed
granted.all_out()
sweep()

local id, due = ARGV[2], ARGV[3]
local r = find(id)
if not r then return leave({ finished_word(id) }) end
if r.leased then return leave({ "leased" }) end

if groups.ordered() and tonumber(ARGV[4] ~= "" and ARGV[4] or 0) > 0 then return leave({ "ordered" }) end

local first = r.first
if due ~= "" then
  first = tonumber(string.sub(due, 2))
  if string.sub(due, 1, 1) == "+" then first = now + first end
end
if r.expirein > 0 and first + r.expirein <= now then return leave({ "expired" }) end

unplace(r)
if due ~= "" then r.first, r.due = first, first end
if ARGV[4] ~= "" then r.priority = tonumber(ARGV[4]) end
local key = string.sub(r.blob, BODY, BODY + r.keylen - 1)
local headers = string.sub(r.blob, BODY + r.keylen, BODY + r.keylen + r.headlen - 1)
local body = string.sub(r.blob, BODY + r.keylen + r.headlen)
if ARGV[5] ~= "" then body = string.sub(ARGV[5], 2) end
if ARGV[6] ~= "" then
  headers = string.sub(ARGV[6], 2)
  r.headlen, r.headsize = #headers, tonumber(ARGV[7])
end
r.blob = pack(RECORD, r.priority, r.seq, r.first, r.enqueued, r.expirein, r.dedup, r.max, r.keylen, r.headlen, r.headsize)
  .. key .. headers .. body
call("HSET", RECORDS, id, r.blob, "\1" .. id, progress_of(r))
use(USE_AGAIN)
set(WIDEST, math.max(q[WIDEST], #r.blob))
place(r)
return leave(row({ "ok", now }, r))
