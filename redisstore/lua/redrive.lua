-- redrive makes dead records ready again, last in arrival.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now      instant, "" for the server's clock
--       2-10  filter   see select.lua; with an id, the newest dead record of it
-- Returns {count, skipped, more, at, seq} as list does, or "live" or "none" for an id that cannot be.

ease()
granted.all_out()
sweep()

local function redrive(m, blob, progress)
  remove_finished(m)
  count(RARE.REDRIVEN)
  set(SEQ, q[SEQ] + 1)
  local r = parse(string.sub(m, 7), blob, progress)
  r.seq, r.first, r.due, r.attempts, r.deliveries, r.untold = q[SEQ], now, now, 0, 0, false
  r.blob = pack(">BI6I6", r.priority, r.seq, r.first) .. string.sub(blob, 14)
  call("HSET", RECORDS, r.id, r.blob)
  if r.reason ~= "" or r.history then
    call("HSET", RECORDS, "\1" .. r.id, progress_of(r))
    use(USE_AGAIN)
  end
  if uses(USE_WINDOWS) then call("ZREM", WINDOWS, r.id) end
  place(r)
  if r.keylen > 0 then groups.join(r) end
end

if only_id ~= "" then
  if find(only_id) then return leave("live") end
  for _, m in ipairs(finished_of(only_id, 5000)) do
    local value = call("ZSCORE", DEAD, m) and call("HGET", RECORDS, "\3" .. m)
    if value then
      local finished, progress, blob = exhume(value)
      redrive(m, blob, progress)
      return leave({ 1, 0, 0, finished, sequence(m) })
    end
  end
  return leave("none")
end

local found, done, skipped = {}, 0, 0
local more, last = select(function(m, blob, progress)
  found[#found + 1] = { m, blob, progress }
end)
for _, f in ipairs(found) do
  if find(string.sub(f[1], 7)) then
    skipped = skipped + 1
  else
    done = done + 1
    redrive(f[1], f[2], f[3])
  end
end
return leave({ done, skipped, more and 1 or 0, last[1], last[2] })
