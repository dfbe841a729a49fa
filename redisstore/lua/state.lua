-- state.lua begins every script: it names the keys of the queue, reads what the queue knows about
-- itself and tells the time. It makes no function: a script may be done before it needs one.    R2
--
-- KEYS  1  meta      hash  v: format, s: numbers and counters, c: configuration, g: grants
--       2  records   hash  see record.lua
--       3  places    zset  waiting records, by priority and due time
--       4  leases    zset  leased records, by end of lease; those in grants apart
--       5  expiries  zset  waiting records that expire, by expiry
--       6  windows   zset  ids in their dedup window, by its end
--       7  dead      zset  dead records, by instant of death
--       8  names     zset  dead and done records, by id and sequence
--       9  waiters   zset  processes that wait, by when they come by themselves
--       10-18  of a queue with keys, bounds or retention, see settings.lua
-- ARGV  1  now  Unix milliseconds, "" for the server's clock; and the layout of a queue of several shards
--
-- Instants are Unix milliseconds and durations milliseconds in all scripts. A member of a zset is
-- a sequence of six bytes and the id behind it, unless it says otherwise.

local META, RECORDS, PLACES, LEASES, EXPIRIES, WINDOWS, DEAD, NAMES, WAITERS = unpack(KEYS)
local call, pack, unpick, sub = redis.call, struct.pack, struct.unpack, string.sub
local mask, lshift = bit.band, bit.lshift

local FORMAT, STEP = "4", 10000
local BAND = 8796093022208 -- 2^43 ms, the year 2248: how far priorities are apart in places

-- What is not in use costs nothing: the lowest ten bits of what is are the priorities that records may
-- wait in, those from USE_TURNS on are the ones that keys may have their turn in, and these are the
-- structures that may hold something. USE_AGAIN: a waiting record may have a progress.
local USE_LEASES, USE_EXPIRIES, USE_WINDOWS, USE_WAITERS = 1024, 2048, 4096, 8192
local USE_WHOLE, USE_TURNS, USE_PARTS, USE_DONE, USE_AGAIN = 16384, 32768, 33554432, 67108864, 134217728

local stored = call("HMGET", META, "v", "s", "c", "g")

-- In a queue of several shards the layout stands behind the format, and behind now the layout that the call
-- was made for: thirteen characters of now, a space or, if records may live elsewhere, a question mark, and v.
local asks = false
if #ARGV[1] > 13 or stored[1] and stored[1] ~= FORMAT then
  local has = stored[1] or ""
  if sub(ARGV[1], 15) ~= has then
    local known = has == "" or string.match(has, "^%S*") == FORMAT
    return redis.error_reply((known and "BIDELAYOUT " or "BIDEFORMAT ") .. has)
  end
  asks = string.byte(ARGV[1], 14) == 63
  ARGV[1] = string.byte(ARGV[1], 13) == 32 and "" or string.match(sub(ARGV[1], 1, 13), "%d*$")
end

-- The first of the numbers: those that most calls need, HOT_SIZE bytes. Up to soon nothing ends that
-- a sweep looks for, no lease, no window, and nothing expires; widest is the longest record so far.
local HOT, HOT_SIZE = ">I7I7I7I7I7I7I7I7I7I7I7", 77
local hot = stored[2] or false
local last_seq, last_token, last_clock, in_use, soon, widest = 0, 0, 0, USE_WAITERS + USE_PARTS, 0, 0
if hot then last_seq, last_token, last_clock, in_use, soon, widest = unpick(">I7I7I7I7I7I7", hot) end
local paused, expire_in, max_deliveries = 0, 0, 0
if stored[3] then paused, expire_in, max_deliveries = unpick(">BI6I4", stored[3]) end

-- A grant is one entry for leases that one claim has given: of at most GRANT_MOST records with tokens
-- one after the other, delivered for the first time, to which nothing else has happened. It is all
-- the progress that these have. What stands here of each, in order: the first token, the end, and a bit
-- for each record that is still in it. What it holds is in records, see grants.lua.
local GRANT, GRANT_SIZE, GRANT_MOST, MOST_GRANTS = ">I7I6I6", 19, 48, 32
local grants = stored[4] or ""
if #grants % GRANT_SIZE ~= 0 then grants = "" end -- damage: Repair finds them in records

-- The scripts for queues without keys, bounds and retention are a part of those for all queues.
if not KEYS[10] and mask(in_use, USE_WHOLE) ~= 0 then return redis.error_reply("BIDEWHOLE") end

-- server is what the server's clock shows, now the instant of the call, and micros that of tokens: in
-- microseconds, so that two primaries of which one has not heard of the other seldom agree.    R5
local server, now, stepped, micros = nil, tonumber(ARGV[1]), false, 0
if not now or mask(in_use, USE_WAITERS) ~= 0 then
  local time = call("TIME")
  server = time[1] * 1000 + math.floor(time[2] / 1000)
  if not now then micros = time[1] * 1000000 + time[2] end
end
if not now then
  now = math.max(server, last_clock)
  if now - server > STEP then now, stepped = server, true end
  last_clock = now
end
micros = math.max(micros, now * 1000)

-- Nothing that time has done to the queue is to be worked off.
local quiet = hot and now < soon and not stepped
