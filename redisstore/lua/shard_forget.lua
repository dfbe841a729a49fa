-- shard_forget removes a finished record that another shard has taken in.
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1     now     "", no time passes
--       2     member  of the record
-- Returns 1.

ease()
if call("HEXISTS", RECORDS, "\3" .. ARGV[2]) == 1 then
  remove_finished(ARGV[2])
  count(RARE.PURGED)
end
save()
return 1
