-- topic changes the bindings of a topic and returns them.               R17
--
-- KEYS  1    bindings  zset  of score 0: topic and queue, divided by a zero byte
-- ARGV  1    topic     its name
--       2    most      bindings that it may have
--       3... queue     a name
--            bound     1 if it is to be bound, 0 if it is not
-- Returns {1, queues} in the order of their names, or {0, n} if there would be n of them.

local BINDINGS, TOPIC, MOST = KEYS[1], ARGV[1], tonumber(ARGV[2])
local from, below = "[" .. TOPIC .. "\0", "(" .. TOPIC .. "\1"

local added, removed = {}, {}
for i = 3, #ARGV, 2 do
  local m = TOPIC .. "\0" .. ARGV[i]
  local bound = redis.call("ZSCORE", BINDINGS, m)
  if ARGV[i + 1] == "1" and not bound then added[m] = true end
  if ARGV[i + 1] == "0" and bound then removed[m] = true end
end
local n = redis.call("ZLEXCOUNT", BINDINGS, from, below)
for _ in pairs(added) do n = n + 1 end
for _ in pairs(removed) do n = n - 1 end
if next(added) and n > MOST then return { 0, n } end
for m in pairs(removed) do redis.call("ZREM", BINDINGS, m) end
for m in pairs(added) do redis.call("ZADD", BINDINGS, 0, m) end
local queues = redis.call("ZRANGE", BINDINGS, from, below, "BYLEX")
for i, m in ipairs(queues) do queues[i] = string.sub(m, #TOPIC + 2) end
return { 1, queues }
