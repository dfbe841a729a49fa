-- byid.lua finds records for calls by id.

-- finished_of returns the members of finished records of an id, the newest first. In a queue of several shards one
-- that was carried home has a later sequence than those that ended after it there; so they go by their ends, which
-- come in the order of sequences otherwise.
local function finished_of(id, most)
  local spread = stored[1] and stored[1] ~= FORMAT
  local found = call("ZREVRANGEBYLEX", NAMES, "(" .. id .. "\1", "[" .. id .. "\0", "LIMIT", 0, spread and math.max(most, 100) or most)
  local ended = {}
  for i, name in ipairs(found) do
    found[i] = string.sub(name, #id + 2) .. id
    if spread and #found > 1 then ended[found[i]] = tonumber(call("ZSCORE", DEAD, found[i]) or call("ZSCORE", DONE, found[i]) or 0) end
  end
  if next(ended) then
    table.sort(found, function(a, b) return ended[a] > ended[b] or ended[a] == ended[b] and a > b end)
  end
  return found
end

-- newest returns the member of the newest finished record of an id, and what is stored of it.
local function newest(id)
  local m = finished_of(id, 1)[1]
  if m then return m, call("HGET", RECORDS, "\3" .. m) end
end

-- finished_word says in which state an id is that has no live record.
local function finished_word(id)
  local m = newest(id)
  if not m then return "none" end
  return call("ZSCORE", DONE, m) and "done" or "dead"
end

-- row is a record in a reply: id, record, progress and instant of the end, -1 for the living.
local function row(reply, r)
  reply[#reply + 1] = r.id
  reply[#reply + 1] = r.blob
  reply[#reply + 1] = progress_of(r)
  reply[#reply + 1] = -1
  return reply
end

-- finished_row is a finished record in a reply.
local function finished_row(reply, m, value)
  local finished, progress, blob = exhume(value)
  reply[#reply + 1] = string.sub(m, 7)
  reply[#reply + 1] = blob
  reply[#reply + 1] = progress
  reply[#reply + 1] = finished
  return reply
end

-- leave ends a script that answers about one record.
local function leave(reply)
  notify()
  save()
  return reply
end
