-- turns.lua claims where there are keys, bounds or retention.             R3 R11 R18
--
-- ARGV  8-10  see claim.lua

do -- what is local here is not counted: a script may have 200 locals
  local asked = {} -- keys that the claim names, as a set
  local only, except = ARGV[9] == "+", ARGV[9] == "-"
  local named = {}
  do
    local at = 1
    while at <= #ARGV[10] do
      local n = unpick(">I2", ARGV[10], at)
      local key = string.sub(ARGV[10], at + 2, at + 1 + n)
      if not asked[key] then named[#named + 1] = key end
      asked[key] = true
      at = at + 2 + n
    end
  end
  local has_keyless = asked[""] and only or not asked[""] and not only

  -- first_turn returns the key of a priority whose turn is first, since when, and its number.
  local function first_turn(priority)
    if only then
      local best
      for _, key in ipairs(named) do
        local g = key ~= "" and group(key)
        if g and g.served then
          if g.since == nil then
            g.since, g.priority = place_turn(g)
            g.since = g.since or false
          end
          if g.since and g.priority == priority and (not best or g.since < best.since
            or g.since == best.since and g.number < best.number) then
            best = g
          end
        end
      end
      if best then return best.key, best.since, best.number end
      return
    end
    if not uses(bit.lshift(USE_TURNS, priority)) then return end
    local base = band(priority)
    for _ = 1, SWEEP do
      local list = call("ZRANGE", TURNS, number(base), number(base + BAND - 1), "BYSCORE", "LIMIT", 0, #named + 1, "WITHSCORES")
      if #list == 0 then unuse(bit.lshift(USE_TURNS, priority)) end
      local i = 1
      while list[i] and asked[string.sub(list[i], 8)] do i = i + 2 end
      if not list[i] then return end
      local key = string.sub(list[i], 8)
      if group(key).stands == list[i] then return key, tonumber(list[i + 1]) - base, (unpick(">I7", list[i])) end
      call("ZREM", TURNS, list[i]) -- a turn that is over, or nobody's, is damage, and goes
    end
    stopped = true
  end

  -- keyless_at is when records without a key are claimable.
  local function keyless_at()
    local most, dues = math.max(1, set_to.min_batch), {}
    for priority = 0, 9 do
      if uses(bit.lshift(1, priority)) then
        local base = band(priority)
        local list = call("ZRANGE", PLACES, number(base), number(base + BAND - 1), "BYSCORE", "LIMIT", 0, most, "WITHSCORES")
        if #list == 0 then unuse(bit.lshift(1, priority)) end
        for i = 2, #list, 2 do dues[#dues + 1] = tonumber(list[i]) - base end
      end
    end
    if #dues == 0 then return math.huge end
    table.sort(dues)
    local free = dues[1] + set_to.linger
    if dues[most] then free = math.min(free, dues[most]) end
    return free
  end

  -- take_turn leases the head of a key, or a run of it.
  local function take_turn(key, run_of)
    local g = group(key)
    local began = taken
    repeat
      local want = run_of and math.min(limit - taken, chunk) or 1
      if set_to.ordered == 0 and set_to.key_limit > 0 then want = math.min(want, set_to.key_limit - g.leased) end
      touch(g) -- whatever comes of it, so that it is not looked at again for nothing
      if want <= 0 then break end
      local run, kept = { done = 0 }, {}
      local list = call("ZRANGE", MEMBERS, "[" .. key .. "\0W", "(" .. key .. "\0X", "BYLEX", "LIMIT", 0, want)
      local dues = dues_in_key(g, list)
      for i, m in ipairs(list) do
        local due = dues[i]
        if due > now then break end
        local _, seq, _, id = open_member(g, m)
        local place = pack(">I6", seq) .. id
        run[#run + 1], run[#run + 2] = place, due
        kept[place] = m
      end
      if #run == 0 then break end
      local late = lease_run(run, 0)
      local gone, waits, held = {}, {}, {}
      for i = 2, #run.leased, 2 do
        local place = run.leased[i]
        local m = kept[place]
        gone[#gone + 1], waits[#waits + 1] = place, m
        held[#held + 1], held[#held + 2] = 0, key .. "\0X" .. string.sub(m, #key + 3)
      end
      if #gone > 0 then
        call("ZREM", KEYED, unpack(gone))
        call("ZREM", MEMBERS, unpack(waits))
        call("ZADD", MEMBERS, unpack(held))
        g.waiting, g.leased = math.max(0, g.waiting - #gone), g.leased + #gone
        g.served, g.number = now, q[TOKEN]
      end
      work_off(late)
      if #gone == 0 and #late == 0 and not stopped then -- a member without its record is damage, and goes
        for i = 1, #run, 2 do call("ZREM", MEMBERS, kept[run[i]]) end
        g.waiting = math.max(0, g.waiting - #run / 2)
      end
    until not run_of or stopped or taken >= limit or #run < 2 * want
    groups.flush()
    return taken > began
  end

  function groups.claim(run_of)
    groups.flush()
    local keyless = has_keyless and keyless_at() <= now
    local whole_turn = run_of or set_to.min_batch > 1 and set_to.ordered == 0
    local priority = 9
    while priority >= 0 and taken < limit and not stopped do
      local key, since, turn = first_turn(priority)
      if key and since > now then key, since, turn = nil, nil, nil end
      local began = taken
      if keyless and uses(bit.lshift(1, priority)) then claim_keyless(priority, since, turn) end
      if run_of and taken > began then -- the rest of those without a key
        for p = priority, 0, -1 do
          if taken < limit and not stopped and uses(bit.lshift(1, p)) then claim_keyless(p) end
        end
        break
      end
      if key and taken < limit and not stopped then
        local got = take_turn(key, whole_turn)
        if run_of and got then break end
        local g = group(key)
        if g.since and g.since <= now and g.priority > priority then priority = g.priority end
      elseif not key then
        priority = priority - 1
      end
    end

    if stopped or groups.passing() then return now end
    local next_at = has_keyless and keyless_at() or math.huge
    for p = 0, 9 do
      local _, since = first_turn(p)
      if since then next_at = math.min(next_at, since) end
    end
    return next_at <= now and now or math.min(next_at, first_end())
  end
end
