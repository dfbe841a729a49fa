-- grants.lua takes records out of grants: they get a progress and an entry among the leases, each its
-- own. All scripts but the fast ones do so with those that they are about, before they look at them;
-- so no other code knows of grants, and a record is taken out once in its lease at most.    R4 R5
--
-- A grant in records is the end of its leases, the length of the claimer's name and that, the length of
-- ids; for each record sequence and due time, and then the ids, filled up with zero bytes.

local granted = {}
do -- what is local here is not counted: a script may have 200 locals
  local all = {} -- first token, end, bits of those in it, bits of those to take out
  for at = 1, #grants, GRANT_SIZE do
    local first, till, open = unpick(GRANT, grants, at)
    all[#all + 1] = { first = first, till = till, open = open, out = 0 }
  end

  local function has(bits, i) return bits % 2 ^ (i + 1) >= 2 ^ i end

  -- granted.read calls use(id, member, progress) for the records of a grant whose bits are set, and says
  -- whether the text is one.
  function granted.read(first, text, bits, use)
    local by = #text > 10 and unpick(">I2", text, 7) or #text
    if #text < by + 10 then return false end
    local holder, width = sub(text, 1, 8 + by), unpick(">I2", text, 9 + by) -- the end and the claimer, as in a progress
    local n = (#text - 10 - by) / (12 + width)
    if n > GRANT_MOST or n % 1 > 0 then return false end
    local head, name = 11 + by, 11 + by + 12 * n
    for token = first, first + n - 1 do
      if bits % 2 == 1 then
        local id, times = sub(text, name, name + width - 1), sub(text, head, head + 11)
        if string.byte(id, -1) == 0 then id = string.match(id, "^%Z*") end
        use(id, sub(times, 1, 6) .. id, "\1" .. times .. "\0\0\0\1\0\0\0\1" .. pack(">I7", token) .. holder)
      end
      bits, head, name = math.floor(bits / 2), head + 12, name + width
    end
    return true
  end

  -- take_out takes out those whose bits are set in out. A grant without its text is damage, and goes.
  local function take_out()
    local fields, changes, leases, left = {}, {}, {}, {}
    for _, g in ipairs(all) do
      if g.out > 0 then fields[#fields + 1] = "\4" .. pack(">I7", g.first) end
    end
    if #fields == 0 then return end
    local texts, gone, n = call("HMGET", RECORDS, unpack(fields)), { "-" }, 0
    for _, g in ipairs(all) do
      if g.out > 0 then
        n = n + 1
        local score = number(g.till)
        local whole = texts[n] and granted.read(g.first, texts[n], g.out, function(id, m, progress)
          changes[#changes + 1], changes[#changes + 2] = "\1" .. id, progress
          leases[#leases + 1], leases[#leases + 2] = score, m
        end)
        g.open = whole and g.open - g.out or 0
        g.out = 0
        if g.open == 0 then gone[#gone + 1] = fields[n] end
      end
      if g.open > 0 then left[#left + 1] = g end
    end
    call("HDEL", RECORDS, unpack(gone))
    if #changes > 0 then
      call("HSET", RECORDS, unpack(changes))
      call("ZADD", LEASES, unpack(leases))
      use(USE_LEASES)
    end
    all, grants = left, ""
    for _, g in ipairs(all) do grants = grants .. pack(GRANT, g.first, g.till, g.open) end
    call("HSET", META, "g", grants)
  end

  -- granted.all_out takes out all, granted.ended_out those whose leases have ended, granted.some_out
  -- those with some tokens.
  function granted.all_out()
    for _, g in ipairs(all) do g.out = g.open end
    take_out()
  end

  function granted.ended_out()
    for _, g in ipairs(all) do
      if g.till <= now then g.out = g.open end
    end
    take_out()
  end

  function granted.some_out(tokens)
    for _, token in ipairs(tokens) do
      local i = #all
      while i > 0 and all[i].first > token do i = i - 1 end
      local g = all[i]
      local place = g and token - g.first or GRANT_MOST
      if place < GRANT_MOST and has(g.open, place) and not has(g.out, place) then g.out = g.out + 2 ^ place end
    end
    take_out()
  end

  -- granted.ends is the end of the first lease in a grant.
  function granted.ends()
    local first = math.huge
    for _, g in ipairs(all) do first = math.min(first, g.till) end
    return first
  end

  -- granted.count is how many records are in grants.
  function granted.count()
    local n = 0
    for _, g in ipairs(all) do
      for i = 0, GRANT_MOST - 1 do
        if has(g.open, i) then n = n + 1 end
      end
    end
    return n
  end
end
