-- configure changes and returns the configuration of a queue.           R15
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now       "", by the server's clock
--       2     edits     0 reads only, and creates no queue
--       3     paused    1 or 0
--       4     expire in
--       5     max deliveries
--       6     settings  the numbers of settings.lua, packed as there
--       7     was       what 3 to 6 were as they were read, joined; anything else there is now is
--                       left alone, "" changes it whatever it is
--       8     layout    that the shard has from here on, "" leaves it; who waits is told to look again
-- Returns {outcome, paused, expire in, max deliveries, settings, v}: outcome is 0, 1 if the configuration
-- is another than it was, 2 if the order of keys cannot change because there are keys; v is as in meta.

ease()

local function current()
  return { paused, expire_in, max_deliveries, pack_settings(set_to) }
end

-- tell_all sends everybody who waits to claim again: the messages may lie in other shards now.
local function tell_all()
  local word = "ready " .. (string.gsub(ARGV[8], " ", "_")) .. " "
  for _, m in ipairs(call("ZRANGE", WAITERS, 0, -1)) do
    local part, channel, queue = string.match(m, "^(%*?)(%S+) (%S+)")
    if channel then call("PUBLISH", channel, word .. queue .. (part == "*" and " *" or "")) end
  end
  call("DEL", WAITERS)
end

local function answer(outcome)
  local c, changes = current(), outcome == 0 and ARGV[2] ~= "0"
  notify()
  save(changes)
  if changes and ARGV[8] ~= "" then
    call("HSET", META, "v", ARGV[8])
    tell_all()
  end
  return { outcome, c[1], c[2], c[3], c[4], changes and ARGV[8] ~= "" and ARGV[8] or stored[1] or "" }
end

if ARGV[2] == "0" then return answer(0) end
local c = current()
if ARGV[7] ~= "" and ARGV[7] ~= c[1] .. " " .. c[2] .. " " .. c[3] .. " " .. c[4] then return answer(1) end
local was, was_paused = set_to, paused
local new = read_settings(ARGV[6])
if new.ordered ~= was.ordered and call("HLEN", GROUPS) > 0 then return answer(2) end

set_to, paused, expire_in, max_deliveries = new, tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
call("HSET", META, "c", pack(CONFIG, paused, expire_in, max_deliveries))
local other = false
for _, name in ipairs(SETTING_NAMES) do other = other or set_to[name] ~= was[name] end
if other then
  call("HSET", META, "k", pack_settings(set_to))
  use(USE_WHOLE)
end
if was.key_limit ~= set_to.key_limit or was.min_batch ~= set_to.min_batch or was.linger ~= set_to.linger
  or was.key_idle ~= set_to.key_idle then
  pass = "\1"
  go_over()
  soonest = now
end
if was_paused == 1 and paused == 0 then soonest = now end
return answer(0)
