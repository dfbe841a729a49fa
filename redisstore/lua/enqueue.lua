-- enqueue stores records in a queue.                                    R1
--
-- KEYS  1-18  of the queue, 1-9 if it has no keys, see state.lua
-- ARGV  1    now      instant, "" for the server's clock
--       2    terms    fifteen bytes a record: priority, what to do with a live namesake (0 keep, 1
--                     replace, 2 rerun), 1 if a delay follows and 0 if a due time, that number, expire in
--       3... id       of a record
--            rest     of the record: expire in, dedup window, max attempts, sizes, payload
-- Returns {now, results, index, dropped ids, ...}: thirteen bytes a record, outcome, sequence and due
-- time, as EnqueueResult has them. Those of the last records are missing if too much was dropped for one
-- script: nothing was done about them. Of a record that is refused the last says why: 0 it has expired,
-- 1 the queue is full, 2 its key is full, 3 it has a priority in an ordered queue. Outcome 5 answers a call
-- that asks whether id or key live here: they do not, and nothing was stored. The index of a
-- record that others made room for is from 1, their ids are joined by zero bytes.

local TERMS, RESULT = ">BBBI6I6", ">BI6I6"
local REFUSED, STORED, DUPLICATE, REPLACED_ONE, RERAN = 0, 1, 2, 3, 4
local CHUNK = 2000

call("ZADD", WAITERS, "XX", 0, "-") -- refused at maxmemory, before anything is changed
sweep()

local ids = {}
for i = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local blobs, ends = {}, {}
for from = 1, #ids, CHUNK do
  for i, v in ipairs(call("HMGET", RECORDS, unpack(ids, from, math.min(#ids, from + CHUNK - 1)))) do
    blobs[from + i - 1] = v or nil
  end
end
if grants ~= "" and next(blobs) then granted.all_out() end
if #ids > 0 and uses(USE_WINDOWS) then ends = call("ZMSCORE", WINDOWS, unpack(ids)) end

-- Records that are new in every respect are stored together.
local fields, scores, keyed_scores, held, expiries, freed = {}, {}, {}, {}, {}, {}
local touched, used, stored_now = {}, {}, 0

local function flush()
  if #fields > 0 then call("HSET", RECORDS, unpack(fields)) end
  if #scores > 0 then call("ZADD", PLACES, unpack(scores)) end
  if #held > 0 then
    call("ZADD", KEYED, unpack(keyed_scores))
    call("ZADD", MEMBERS, unpack(held))
  end
  if #expiries > 0 then
    call("ZADD", EXPIRIES, unpack(expiries))
    use(USE_EXPIRIES)
  end
  if #freed > 0 then call("ZREM", WINDOWS, unpack(freed)) end
  fields, scores, keyed_scores, held, expiries, freed = {}, {}, {}, {}, {}, {}
end

local last_place, last_score

local function store(id, blob, priority, due, expirein, free, has_key)
  local n, m, place = #fields, string.sub(blob, 2, 7) .. id, band(priority) + due
  if place ~= last_place then last_place, last_score = place, number(place) end
  fields[n + 1], fields[n + 2] = id, blob
  if has_key then
    local r = parse(id, blob, false)
    n = #held
    keyed_scores[n + 1], keyed_scores[n + 2] = last_score, m
    held[n + 1], held[n + 2] = 0, groups.enter(r)
    groups.join(r)
  else
    n = #scores
    scores[n + 1], scores[n + 2] = last_score, m
    used[priority] = true
    if due < soonest then soonest = due end
  end
  if expirein > 0 then
    expiries[#expiries + 1] = number(due + expirein)
    expiries[#expiries + 1] = m
    ends_at(due + expirein)
  end
  if free then freed[#freed + 1] = id end
  stored_now = stored_now + 1
end

local seq, drops, dropped_now = q[SEQ], {}, 0
if groups and groups.bounded() then groups.recount() end
local function enqueue(i, id, rest)
  local priority, onlive, delayed, due, expirein = unpick(TERMS, ARGV[2], 15 * i - 14)
  set(WIDEST, math.max(q[WIDEST], #rest))
  if delayed == 1 then due = now + due end
  if expirein == 0 and expire_in > 0 then
    expirein = expire_in
    rest = pack(">I6", expirein) .. string.sub(rest, 7)
  end
  local key, bounded = "", false
  if groups then
    key, bounded = string.sub(rest, 27, 26 + unpick(">I2", rest, 17)), groups.bounded()
    if key ~= "" then use(USE_WHOLE) end
    if priority > 0 and groups.ordered() then return pack(RESULT, REFUSED, 0, 3) end
  end
  if expirein > 0 and due + expirein <= now then return pack(RESULT, REFUSED, 0, 0) end

  local old, met = nil, touched[id] or blobs[i]
  if touched[id] then
    flush()
    old = find(id)
    if not old and uses(USE_WINDOWS) then ends[i] = call("ZSCORE", WINDOWS, id) end
  elseif blobs[i] then
    old = find(id)
  end
  touched[id] = true
  if asks and not old and not (key ~= "" and group(key).served) then -- neither id nor key is in use here
    local open = ends[i] and tonumber(ends[i]) > now
    if open and onlive ~= 0 then call("ZREM", WINDOWS, id) end
    if not open or onlive ~= 0 then return pack(RESULT, 5, 0, 0) end
  end
  if not old and onlive == 0 and ends[i] and tonumber(ends[i]) > now then
    count(RARE.DUPLICATES)
    return pack(RESULT, DUPLICATE, 0, 0)
  end
  if old and (onlive == 0 or onlive == 2 and not old.leased) then
    count(RARE.DUPLICATES)
    return pack(RESULT, DUPLICATE, old.seq, old.due)
  end

  if bounded and not (old and old.leased) then
    if met then
      flush()
      groups.recount()
    end
    local full = groups.refuses(key, old)
    if full then return pack(RESULT, REFUSED, 0, full) end
  end
  seq = seq + 1
  local outcome = STORED
  local blob = pack(">BI6I6I6", priority, seq, due, now) .. rest
  if old and old.leased then
    count(RARE.RERUNS)
    old.successor = true
    call("HSET", RECORDS, "\2" .. id, blob, "\1" .. id, progress_of(old))
    return pack(RESULT, RERAN, seq, due)
  end
  if old then
    outcome = REPLACED_ONE
    count(RARE.REPLACED)
    unplace(old)
    forget(old)
    if bounded then groups.recount() end
  end
  if bounded then
    local dropped = groups.make_room(key, flush)
    dropped_now = dropped_now + #dropped
    if #dropped > 0 then
      drops[#drops + 1], drops[#drops + 2] = i, table.concat(dropped, "\0")
      for _, gone in ipairs(dropped) do touched[gone] = true end
    end
  end
  store(id, blob, priority, due, expirein, ends[i] or old, key ~= "")
  return pack(RESULT, outcome, seq, due)
end

local results = {}
for i, id in ipairs(ids) do
  if dropped_now >= LEFT_OVER then break end
  results[i] = enqueue(i, id, ARGV[2 * i + 2])
end
flush()
set(SEQ, seq)
set(ENQUEUED, q[ENQUEUED] + stored_now)
for priority in pairs(used) do use(bit.lshift(1, priority)) end
notify()
save(seq > 0)
return { now, table.concat(results), unpack(drops) }
