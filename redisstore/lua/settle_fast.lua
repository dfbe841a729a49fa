-- settle_fast.lua is the way of most calls: acks of leases that are held, of records without a
-- successor and a dedup window. Whatever else there is falls through to settle.lua, with nothing
-- changed. Beside those of settle.lua it returns "", all are settled.

do
  if quiet and #ARGV > 1 then
    -- First where each lease is: in a grant, by its token, or in the record's own progress.
    local n, all, seen, fields = 0, true, {}, {}
    local low, high, grant = 0, 0, nil -- the last grant met, and the tokens up to the next one
    local met, tokens, within = {}, {}, {} -- grants by their place; by receipt: token, grant
    for i = 2, #ARGV, 2 do
      local words = ARGV[i + 1]
      local token = unpick(">I7", words, 2)
      n, all = n + 1, string.byte(words) == 1 and not seen[token]
      if not all then break end
      tokens[n], seen[token] = token, true
      if token < low or token >= high then
        local at = 1
        low, high = 0, math.huge
        while at < #grants do
          local first = unpick(">I7", grants, at)
          if first > token then
            high = first
            break
          end
          low, at = first, at + GRANT_SIZE
        end
        at = at - GRANT_SIZE
        grant = met[at]
        if at > 0 and not grant then
          local _, till, open = unpick(GRANT, grants, at)
          grant = { at = at, first = low, till = till, open = open, field = "\4" .. sub(grants, at, at + 6) }
          met[at] = grant
        end
      end
      local own = 2 ^ (token - low)
      if grant and grant.open % (2 * own) >= own then
        if not grant.slot then
          grant.slot, fields[#fields + 1] = #fields + 1, grant.field
        end
        grant.open, within[n] = grant.open - own, grant
      else
        fields[#fields + 1] = "\1" .. ARGV[i]
        within[n] = #fields
      end
    end
    local got = all and call("HMGET", RECORDS, unpack(fields))

    local gone, members, touched = {}, {}, {}
    for i = 1, all and n or 0 do
      local id, held = ARGV[2 * i], within[i]
      gone[#gone + 1] = id
      if type(held) == "number" then
        local progress = got[held]
        all = progress and mask(string.byte(progress), 239) == 1 and sub(progress, 22, 28) == sub(ARGV[2 * i + 1], 2, 8)
          and unpick(">I6", progress, 29) > now
        if not all then break end
        members[#members + 1], gone[#gone + 1] = sub(progress, 2, 7) .. id, fields[held]
      else
        local text = got[held.slot]
        if not held.ids then
          local by = text and #text > 10 and unpick(">I2", text, 7)
          all = by and #text >= by + 10 and held.till > now -- else it is damaged, or over
          if not all then break end
          held.width = unpick(">I2", text, by + 9)
          held.ids = by + 11 + 12 * (#text - by - 10) / (12 + held.width)
          touched[#touched + 1] = held
        end
        local from = held.ids + held.width * (tokens[i] - held.first)
        if #id < held.width then id = id .. string.rep("\0", held.width - #id) end
        all = sub(text, from, from + held.width - 1) == id
        if not all then break end
      end
    end

    if all then
      local left, from = "", 1
      if #touched > 1 then table.sort(touched, function(a, b) return a.at < b.at end) end
      for _, g in ipairs(touched) do
        if g.open > 0 then
          left = left .. sub(grants, from, g.at + 12) .. pack(">I6", g.open)
        else
          left, gone[#gone + 1] = left .. sub(grants, from, g.at - 1), g.field
        end
        from = g.at + GRANT_SIZE
      end
      if #members > 0 then call("ZREM", LEASES, unpack(members)) end
      call("HDEL", RECORDS, unpack(gone))
      local _, _, _, _, _, _, enqueued, claimed, acked, wakeups, empty = unpick(HOT, hot)
      local numbers = pack(HOT, last_seq, last_token, last_clock, in_use, soon, widest,
        enqueued, claimed, acked + n, wakeups, empty) .. sub(hot, HOT_SIZE + 1)
      if #touched == 0 then
        call("HSET", META, "s", numbers)
      else
        call("HSET", META, "s", numbers, "g", left .. sub(grants, from))
      end
      return ""
    end
  end
end
