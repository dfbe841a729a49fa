-- lock_release gives a lock up and tells the first that waits for it.    R16
--
-- KEYS  1-5  of the locks, see lock.lua
-- ARGV  1    now    instant, "" for the server's clock
--       2    name   of the lock
--       3    owner  who has it
--       4    token  that he got
-- Returns 1, or 0 if the lock was lost.

begin(false)
sweep()

local till, token, owner = holder()
local held = till and owner == ARGV[3] and token == ARGV[4]
if held then
  drop(NAME)
  wake()
end
save()
return held and 1 or 0
