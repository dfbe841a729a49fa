-- settings.lua reads what else there is to know about a queue with keys, bounds or retention. It
-- stands in meta: k: settings, n: numbers and, during a pass over the keys, how far that has come.
--
-- KEYS  10  keys     hash  what is known about a key, see groups.lua
--       11  members  zset  waiting and leased records by key, read by lexical range
--       12  keyed    zset  waiting records with a key, scored as in places
--       13  turns    zset  keys by the priority of their head and when they are claimable
--       14  heads    zset  keys with waiting records, by due time of the head
--       15  sizes    zset  keys, by number of waiting records, negative
--       16  idle     zset  keys with waiting records, by when a record has joined; if keys expire
--       17  done     zset  acknowledged records that are kept, by instant of the ack
--       18  untold   zset  dead records that nobody has told, by instant of death

local GROUPS, MEMBERS, KEYED, TURNS, HEADS, SIZES, IDLE, DONE, UNTOLD = unpack(KEYS, 10)
local SETTINGS = ">BI2I2I6I6I6I6BI6I6I6I6I6B"
local SETTING_NAMES = { "ordered", "key_limit", "min_batch", "linger", "key_idle", "max_len", "max_per_key", "overflow",
  "retain_for", "retain_count", "retain_bytes", "dead_for", "dead_count", "tell_dead" }

local function read_settings(text)
  local values, named = text and { unpick(SETTINGS, text) } or {}, {}
  for i, name in ipairs(SETTING_NAMES) do named[name] = values[i] or 0 end
  return named
end

local function pack_settings(named)
  local values = {}
  for i, name in ipairs(SETTING_NAMES) do values[i] = named[name] end
  return pack(SETTINGS, unpack(values))
end

local more = call("HMGET", META, "k", "n")
local set_to, renumbered = read_settings(more[1]), false
local numbers = { dropped = 0, retained = 0, trimmed = 0, done_bytes = 0 }
local pass = "" -- "\1" and the last key, "" if none is under way
if more[2] then
  numbers.dropped, numbers.retained, numbers.trimmed, numbers.done_bytes = unpick(">I7I7I7I7", more[2])
  pass = string.sub(more[2], 29)
end

groups = {}

-- share is what a shard may hold of what the whole queue may.
function groups.share(n)
  return math.ceil(n / (tonumber(string.match(stored[1] or "", " %d+ .-(%d+)$")) or 1))
end

local function retains()
  return set_to.retain_for + set_to.retain_count + set_to.retain_bytes > 0
end
groups.retains = retains()

local function tally(which, by)
  numbers[which], renumbered = math.max(0, numbers[which] + by), true
end

function groups.save()
  if renumbered then
    call("HSET", META, "n", pack(">I7I7I7I7", numbers.dropped, numbers.retained, numbers.trimmed, numbers.done_bytes) .. pass)
    use(USE_WHOLE)
  end
end
