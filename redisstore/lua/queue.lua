-- queue.lua has what is known about a queue, for the scripts that do not end before it.

local NUMBERS, CONFIG = HOT .. string.rep("I7", 12), ">BI6I4"
local SWEEP = 100
local SEQ, TOKEN, CLOCK, USES, SOON, WIDEST, ENQUEUED, CLAIMED, ACKED, WAKEUPS, EMPTY = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local RARE = { DUPLICATES = 12, REPLACED = 13, RERUNS = 14, RETRIED = 15, RELEASED = 16, LAPSED = 17, DIED = 18,
  REDRIVEN = 19, EXPIRED = 20, CANCELED = 21, PURGED = 22, STEPS = 23 }

local known, changed = stored[1] ~= false, false
local q = hot and { unpick(NUMBERS, hot) } or
  { 0, 0, 0, in_use, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

-- Where there are keys, bounds or retention, groups is what settings.lua and those behind it make of it.
local groups

local function set(field, value)
  if q[field] ~= value then q[field], changed = value, true end
end

local function count(field) q[field], changed = q[field] + 1, true end

local function uses(bits) return mask(q[USES], bits) ~= 0 end

local function use(bits) set(USES, bit.bor(q[USES], bits)) end

local function unuse(bits) set(USES, mask(q[USES], bit.bnot(bits))) end

-- ends_at makes a sweep happen at an instant, if none would be before.
local function ends_at(at)
  if at < q[SOON] then set(SOON, at) end
end

-- save writes what changed, if the queue exists or is to come into being.
local function save(create)
  if groups then groups.save() end
  if not (known or create) then return end
  if not known then
    call("HSET", META, "v", FORMAT, "s", pack(NUMBERS, unpack(q, 1, 23)))
  elseif changed then
    call("HSET", META, "s", pack(NUMBERS, unpack(q, 1, 23)))
  end
end

local function clock()
  local time = call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

if stepped then count(RARE.STEPS) end
set(CLOCK, last_clock)
