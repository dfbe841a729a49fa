-- lock_renew makes a lock end later, or sooner.                          R16
--
-- KEYS  1-5  of the locks, see lock.lua
-- ARGV  1    now    instant, "" for the server's clock
--       2    name   of the lock
--       3    owner  who has it
--       4    token  that he got
--       5    ttl    how long from now on
-- Returns {1, now, end}, numbers as text, or {0} if the lock was lost.

begin(false)
sweep()

local till, token, owner = holder()
if not till or owner ~= ARGV[3] or token ~= ARGV[4] then
  save()
  return { "0" }
end
till = now + tonumber(ARGV[5])
hold(owner, token, till)
save()
return { "1", number(now), number(till) }
