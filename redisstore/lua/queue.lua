-- queue.lua begins every script: it names the keys of the queue, reads what the queue knows about
-- itself and tells the time.                                            R2
--
-- KEYS  1  meta      hash  v: format, s: numbers and counters, c: configuration
--       2  records   hash  see record.lua
--       3  places    zset  waiting records, by priority and due time
--       4  leases    zset  leased records, by end of lease
--       5  expiries  zset  waiting records that expire, by expiry
--       6  windows   zset  ids in their dedup window, by its end
--       7  dead      zset  dead records, by instant of death
--       8  names     zset  dead records, by id and sequence
--       9  waiters   zset  processes that wait, by when they come by themselves
--       10-18  of a queue with keys, bounds or retention, see settings.lua
-- ARGV  1  now  Unix milliseconds, "" for the server's clock
--
-- Instants are Unix milliseconds and durations milliseconds in all scripts. A member of a zset is
-- a sequence of six bytes and the id behind it, unless it says otherwise.

local META, RECORDS, PLACES, LEASES, EXPIRIES, WINDOWS, DEAD, NAMES, WAITERS = unpack(KEYS)
local call, pack, unpick = redis.call, struct.pack, struct.unpack

local FORMAT, STEP, SWEEP = "2", 10000, 100
local NUMBERS, CONFIG = ">" .. string.rep("I7", 21), ">BI6I4"
local SEQ, TOKEN, CLOCK, USES, ENQUEUED, DUPLICATES, REPLACED, RERUNS, CLAIMED, ACKED, RETRIED,
  RELEASED, LAPSED, DIED, REDRIVEN, EXPIRED, CANCELED, PURGED, WAKEUPS, EMPTY, STEPS =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21

-- What is not in use costs nothing: the lowest ten bits of USES are the priorities that records may
-- wait in, those from USE_TURNS on are the ones that keys may have their turn in, and these are the
-- structures that may hold something.
local USE_LEASES, USE_EXPIRIES, USE_WINDOWS, USE_WAITERS = 1024, 2048, 4096, 8192
local USE_WHOLE, USE_TURNS, USE_PARTS, USE_DONE = 16384, 32768, 33554432, 67108864

local stored = call("HMGET", META, "v", "s", "c")
if stored[1] and stored[1] ~= FORMAT then
  return redis.error_reply("BIDEFORMAT " .. stored[1])
end
local known, changed = stored[1] ~= false, false
local q = stored[2] and { unpick(NUMBERS, stored[2]) } or
  { 0, 0, 0, USE_WAITERS + USE_PARTS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
local paused, expire_in, max_deliveries = 0, 0, 0
if stored[3] then paused, expire_in, max_deliveries = unpick(CONFIG, stored[3]) end

-- The scripts for queues without keys, bounds and retention are a part of those for all queues.
-- Where there is more, groups is what settings.lua and those behind it make of it.
local groups
if not KEYS[10] and bit.band(q[USES], USE_WHOLE) ~= 0 then return redis.error_reply("BIDEWHOLE") end

local function set(field, value)
  if q[field] ~= value then q[field], changed = value, true end
end

local function count(field) q[field], changed = q[field] + 1, true end

local function uses(bits) return bit.band(q[USES], bits) ~= 0 end

local function use(bits) set(USES, bit.bor(q[USES], bits)) end

local function unuse(bits) set(USES, bit.band(q[USES], bit.bnot(bits))) end

-- save writes what changed, if the queue exists or is to come into being.
local function save(create)
  if groups then groups.save() end
  if not (known or create) then return end
  if not known then
    call("HSET", META, "v", FORMAT, "s", pack(NUMBERS, unpack(q, 1, 21)))
  elseif changed then
    call("HSET", META, "s", pack(NUMBERS, unpack(q, 1, 21)))
  end
end

-- server is what the server's clock shows, now the instant of the call.
local function clock()
  local time = call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local server, now, stepped
if ARGV[1] == "" or uses(USE_WAITERS) then server = clock() end
if ARGV[1] ~= "" then
  now = tonumber(ARGV[1])
else
  now = server
  if now < q[CLOCK] then
    if q[CLOCK] - now <= STEP then
      now = q[CLOCK]
    else
      count(STEPS)
      stepped = true
    end
  end
  set(CLOCK, now)
end
