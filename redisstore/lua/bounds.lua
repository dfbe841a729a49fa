-- bounds.lua keeps a queue within its bounds: waiting records, idle keys, finished records.   R12 R13 R19

local payload_size, remove_finished
do -- what is local here is not counted: a script may have 200 locals
  local waiting -- records in the queue, those included that are about to be stored

  -- recount counts them; none is about to be stored.
  function groups.recount() waiting = call("ZCARD", PLACES) + call("ZCARD", KEYED) end

  -- oldest returns the waiting record that has to make room first: of the lowest priority, which
  -- stands last, the first.
  local function oldest()
    local found, at, priority = nil, -1, nil
    for _, key in ipairs({ PLACES, KEYED }) do
      local last = call("ZRANGE", key, -1, -1, "WITHSCORES")
      local base = last[1] and math.floor(tonumber(last[2]) / BAND) * BAND
      if base and (not found or base >= priority) then
        local head = call("ZRANGE", key, number(base), number(base + BAND - 1), "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
        local due = tonumber(head[2])
        if not found or base > priority or due < at or due == at and unpick(">I6", head[1]) < unpick(">I6", found) then
          found, at, priority = head[1], due, base
        end
      end
    end
    return found and load(string.sub(found, 7)), found
  end

  -- refuses says whether there is no room for a record, 1 in the queue and 2 in its key. What it
  -- replaces is as good as gone.
  function groups.refuses(key, old)
    if set_to.overflow == 1 then return end
    local in_all = waiting
    if old then in_all = in_all - 1 end
    if set_to.max_per_key > 0 and key ~= "" then
      local in_one = group(key).waiting
      if old and old.keylen > 0 and group_of(old).key == key then in_one = in_one - 1 end
      if in_one >= set_to.max_per_key then return 2 end
    end
    if set_to.max_len > 0 and in_all >= groups.share(set_to.max_len) then return 1 end
  end

  function groups.bounded() return set_to.max_len > 0 or set_to.max_per_key > 0 end

  -- make_room counts one more, drops the oldest waiting records before it, so that it fits, and returns
  -- their ids. It calls ready before the first.
  function groups.make_room(key, ready)
    local dropped = {}
    waiting = waiting + 1
    if set_to.overflow == 0 then return dropped end
    while #dropped < SWEEP do
      local r, m
      local in_key_full = set_to.max_per_key > 0 and key ~= "" and group(key).waiting >= set_to.max_per_key
      if not in_key_full and not (set_to.max_len > 0 and waiting > groups.share(set_to.max_len)) then break end
      if #dropped == 0 then ready() end
      if in_key_full then
        local g = group(key)
        local _, _, _, id = open_member(g, first_in_key(g, 0))
        r = load(id)
      else
        r, m = oldest()
      end
      if r then
        unplace(r)
        forget(r)
        waiting = waiting - 1
        tally("dropped", 1)
        dropped[#dropped + 1] = r.id
      else
        call("ZREM", PLACES, m or "") -- a place without its record is damage, and goes
        call("ZREM", KEYED, m or "")
        break
      end
    end
    return dropped
  end

  function payload_size(r) return #r.blob - BODY + 1 - r.keylen - r.headlen + r.headsize end

  -- retain keeps an acknowledged record.
  function groups.retain(r)
    r.done = true
    keep(DONE, r, now)
    use(USE_DONE)
    tally("retained", 1)
    tally("done_bytes", payload_size(r))
  end

  -- adopt counts the bytes of a done record that another shard has kept.
  function groups.adopt(r) tally("done_bytes", payload_size(r)) end

  -- mourn marks a record that is about to be dead as untold.
  function groups.mourn(r, at)
    if set_to.tell_dead == 0 then return end
    r.untold = true
    call("ZADD", UNTOLD, number(at), member(r))
  end

  -- remove_finished takes a dead or done record out of the queue.
  function remove_finished(m)
    local value = call("HGET", RECORDS, "\3" .. m)
    if call("ZREM", DONE, m) == 1 then
      if value then
        local _, progress, blob = exhume(value)
        tally("done_bytes", -payload_size(parse(string.sub(m, 7), blob, progress)))
      end
    else
      call("ZREM", DEAD, m)
      call("ZREM", UNTOLD, m)
    end
    call("ZREM", NAMES, string.sub(m, 7) .. "\0" .. string.sub(m, 1, 6))
    call("HDEL", RECORDS, "\3" .. m)
  end

  local function trim_one(key, may_stay)
    for _ = 1, SWEEP do
      local head = call("ZRANGE", key, 0, 0, "WITHSCORES")
      if key == DONE and not head[1] then unuse(USE_DONE) end
      if not head[1] or may_stay(tonumber(head[2])) then return end
      remove_finished(head[1])
      tally("trimmed", 1)
    end
  end

  -- expire_idle expires waiting records of keys that nobody has joined for too long.
  function groups.expire_idle()
    if stepped then pass = "\1" end
    if pass ~= "" then go_over() end
    groups.flush()
    if set_to.key_idle == 0 then return end
    local left = SWEEP
    while left > 0 do
      local key = call("ZRANGE", IDLE, "-inf", number(now - set_to.key_idle), "BYSCORE", "LIMIT", 0, 1)[1]
      if not key then return end
      local g, before = group(key), left
      while left > 0 and g.waiting > 0 and g.joined + set_to.key_idle <= now do
        local m = first_in_key(g, 0)
        local r = m and load((select(4, open_member(g, m))))
        if not r then break end
        expire(r)
        left = left - 1
      end
      if left == before then left = left - 1 end -- it is not idle, which is damage
      if left > 0 then call("ZREM", IDLE, key) end
      groups.flush()
    end
  end

  -- trim removes finished records beyond the limits.
  function groups.trim()
    groups.flush()
    if uses(USE_DONE) then
      trim_one(DONE, function(at)
        return (retains() or not more[1]) -- without settings nobody has said that none be kept
          and (set_to.retain_for == 0 or at + set_to.retain_for > now)
          and (set_to.retain_count == 0 or call("ZCARD", DONE) <= groups.share(set_to.retain_count))
          and (set_to.retain_bytes == 0 or numbers.done_bytes <= groups.share(set_to.retain_bytes))
      end)
    end
    if set_to.dead_for + set_to.dead_count > 0 then
      trim_one(DEAD, function(at)
        return (set_to.dead_for == 0 or at + set_to.dead_for > now)
          and (set_to.dead_count == 0 or call("ZCARD", DEAD) <= groups.share(set_to.dead_count))
      end)
    end
  end
end
