-- lock.lua begins every script about locks: it names their keys, reads the last token, tells the time
-- and removes the lock of the call if it has ended.                     R2 R16
--
-- KEYS  1  state     hash  v: format, t: last token, c: latest answer of the server's clock
--       2  held      hash  by name of a lock: end, token and owner, divided by spaces
--       3  ends      zset  names of locks that are held, by end
--       4  waiting   zset  of score 0: name, arrival and waiter, divided by zero bytes
--       5  patience  zset  the same, by when a waiter is forgotten by the server's clock
-- ARGV  1  now   Unix milliseconds, "" for the server's clock
--       2  name  of the lock
--
-- Instants are Unix milliseconds and durations milliseconds. A waiter is "channel call". Arrivals have
-- fifteen digits, so that waiters of a lock stand in their order.

local STATE, HELD, ENDS, WAITING, PATIENCE = unpack(KEYS)
local NOW, NAME = ARGV[1], ARGV[2]
local call = redis.call
local FORMAT, STEP, SWEEP = "1", 10000, 100

local function number(n) return string.format("%.0f", n) end

local state = call("HMGET", STATE, "v", "t", "c")
if state[1] and state[1] ~= FORMAT then
  return redis.error_reply("BIDEFORMAT " .. state[1])
end
local last, latest = tonumber(state[2] or 0), tonumber(state[3] or 0)

local time = call("TIME")
local server = time[1] * 1000 + math.floor(time[2] / 1000)
local now = tonumber(NOW) or server
local micros = NOW == "" and time[1] * 1000000 + time[2] or 0
if NOW == "" and now < latest and latest - now <= STEP then now = latest end

-- begin is the first write of a script. One that gives up nothing is refused by a full server.
local function begin(adds)
  if adds then call("ZADD", ENDS, "XX", 0, "") else call("HDEL", HELD, "") end
end

-- save remembers the clock and the last token.
local function save()
  if NOW == "" then latest = now end
  if state[2] ~= number(last) or state[3] ~= number(latest) then
    call("HSET", STATE, "v", FORMAT, "t", number(last), "c", number(latest))
  end
end

local function drop(name)
  call("HDEL", HELD, name)
  call("ZREM", ENDS, name)
end

-- sweep forgets what has ended, by the server's clock.
local function sweep()
  if NOW ~= "" then return end
  for _, name in ipairs(call("ZRANGE", ENDS, "-inf", number(now), "BYSCORE", "LIMIT", 0, SWEEP)) do drop(name) end
  for _, m in ipairs(call("ZRANGE", PATIENCE, "-inf", number(server), "BYSCORE", "LIMIT", 0, SWEEP)) do
    call("ZREM", WAITING, m)
    call("ZREM", PATIENCE, m)
  end
end

-- holder returns the end, the token and the owner of the lock, nothing if nobody holds it.
local function holder()
  local value = call("HGET", HELD, NAME)
  if not value then return end
  local till, token, owner = string.match(value, "^(%d+) (%d+) (.*)$")
  till = tonumber(till)
  if till > now then return till, token, owner end
  drop(NAME)
end

local function hold(owner, token, till)
  call("HSET", HELD, NAME, number(till) .. " " .. token .. " " .. owner)
  call("ZADD", ENDS, number(till), NAME)
end

-- place is the member of somebody who waits for the lock.
local function place(arrival, waiter) return NAME .. "\0" .. arrival .. "\0" .. waiter end

-- leave takes a waiter out and says whether he was there.
local function leave(arrival, waiter)
  local m = place(arrival, waiter)
  call("ZREM", PATIENCE, m)
  return call("ZREM", WAITING, m) == 1
end

-- wake tells the first that waits for the lock. Nobody hears one who has died.
local function wake()
  for _ = 1, SWEEP do
    local m = call("ZRANGE", WAITING, "[" .. NAME .. "\0", "(" .. NAME .. "\1", "BYLEX", "LIMIT", 0, 1)[1]
    if not m then return end
    call("ZREM", WAITING, m)
    call("ZREM", PATIENCE, m)
    local channel, id = string.match(string.sub(m, #NAME + 18), "^(%S+) (%S+)$")
    if call("PUBLISH", channel, "lock " .. id) > 0 then return end
  end
end
