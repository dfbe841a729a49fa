-- configure changes and returns the configuration of a queue.           R15
--
-- KEYS  1-9  of the queue, see queue.lua
-- ARGV  1    now             "", by the server's clock
--       2    paused          "" leaves it, 1 or 0
--       3    expire in       "" leaves it
--       4    max deliveries  "" leaves it
-- Returns {paused, expire in, max deliveries}. A call that leaves everything creates no queue.

ease()

local edits = ARGV[2] .. ARGV[3] .. ARGV[4] ~= ""
if edits then
  local was = paused
  if ARGV[2] ~= "" then paused = tonumber(ARGV[2]) end
  if ARGV[3] ~= "" then expire_in = tonumber(ARGV[3]) end
  if ARGV[4] ~= "" then max_deliveries = tonumber(ARGV[4]) end
  call("HSET", META, "c", pack(CONFIG, paused, expire_in, max_deliveries))
  if was == 1 and paused == 0 then soonest = now end
end
notify()
save(edits)
return { paused, expire_in, max_deliveries }
