-- lock_leave takes out somebody who waits no more. If he was told of a release and leaves the lock to
-- others, the next one is told.                                          R16
--
-- KEYS  1-5  of the locks, see lock.lua
-- ARGV  1    now      "", waiting is by the server's clock
--       2    name     of the lock
--       3    waiter   "channel call"
--       4    arrival  as the refusal has it
-- Returns 1 if the next one was told, else 0.

begin(false)
sweep()

local told = not leave(ARGV[4], ARGV[3]) and not holder()
if told then wake() end
save()
return told and 1 or 0
