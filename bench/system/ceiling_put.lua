-- ceiling_put stores messages.
--
-- KEYS  1  records  hash  id to body
--       2  ready    list  of ids, the next one last
--       3  delayed  zset  id by due time
--       4  leased   zset  id by end of lease
-- ARGV  for each message: id, due in milliseconds or "" for now, body; at most 2,000 messages

local records, ready, delayed = {}, {}, {}
for i = 1, #ARGV, 3 do
  local id, due = ARGV[i], ARGV[i + 1]
  records[#records + 1] = id
  records[#records + 1] = ARGV[i + 2]
  if due == "" then
    ready[#ready + 1] = id
  else
    delayed[#delayed + 1] = due
    delayed[#delayed + 1] = id
  end
end
redis.call("HSET", KEYS[1], unpack(records))
if #ready > 0 then
  redis.call("LPUSH", KEYS[2], unpack(ready))
end
if #delayed > 0 then
  redis.call("ZADD", KEYS[3], unpack(delayed))
end
return #ARGV / 3
