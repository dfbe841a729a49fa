-- topics lists names of topics.                                         R17
--
-- KEYS  1  bindings  zset  of score 0: topic and queue, divided by a zero byte
-- ARGV  1  after     names behind this one only, "" from the first on
--       2  limit     how many
-- Returns the names in order.

local names, after = {}, ARGV[1]
while #names < tonumber(ARGV[2]) do
  local from = after == "" and "-" or "(" .. after .. "\1"
  local m = redis.call("ZRANGE", KEYS[1], from, "+", "BYLEX", "LIMIT", 0, 1)[1]
  if not m then break end
  after = string.sub(m, 1, string.find(m, "%z") - 1)
  names[#names + 1] = after
end
return names
