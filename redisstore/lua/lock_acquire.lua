-- lock_acquire takes a lock, or says who has it and enters who waits for it in the same step.  R16
--
-- KEYS  1-5  of the locks, see lock.lua
-- ARGV  1    now       instant, "" for the server's clock
--       2    name      of the lock
--       3    owner     who gets it
--       4    ttl       how long
--       5    waiter    "channel call", "" if nobody waits
--       6    arrival   as an earlier refusal has it, "" if there was none
--       7    patience  how long the waiter is remembered
-- Returns {1, now, end, token} or {0, now, end, owner, arrival}, numbers as text.

begin(true)
sweep()

local owner, ttl, waiter, arrival = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local till, token, other = holder()
if till and other ~= owner then
  if waiter ~= "" then
    if arrival == "" then arrival = string.format("%015.0f", server) end
    call("ZADD", WAITING, 0, place(arrival, waiter))
    call("ZADD", PATIENCE, number(server + tonumber(ARGV[7])), place(arrival, waiter))
  end
  save()
  return { "0", number(now), number(till), other, arrival }
end
if arrival ~= "" then leave(arrival, waiter) end
if not till then
  last = math.max(last + 1, now * 1000, micros)
  token = number(last)
end
hold(owner, token, now + ttl)
save()
return { "1", number(now), number(now + ttl), token }
