-- extend makes leases of one queue end later, or sooner.                R5
--
-- KEYS  1-18  of the queue, see state.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2    lease    duration, from now on
--       3... id       of a record
--            token    of its lease, decimal
-- Returns a string with a byte for every record: 1 if it is extended, 0 if the lease was lost.

ease()
local tokens = {}
for i = 4, #ARGV, 2 do tokens[#tokens + 1] = tonumber(ARGV[i]) end
granted.some_out(tokens)
sweep()

local till, extended = now + tonumber(ARGV[2]), {}
for i = 3, #ARGV, 2 do
  local id, token = ARGV[i], tonumber(ARGV[i + 1])
  local r = load(id)
  local held = r and r.leased and r.token == token and r.till > now
  if held then
    if till < r.till and till < soonest then soonest = till end
    r.till = till
    call("ZADD", LEASES, number(till), member(r))
    ends_at(till)
    call("HSET", RECORDS, "\1" .. id, progress_of(r))
  end
  extended[#extended + 1] = held and "\1" or "\0"
end
notify()
save()
return table.concat(extended)
