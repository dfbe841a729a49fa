-- byid.lua finds records for calls by id.

-- newest returns the member of the newest finished record of an id, and what is stored of it.
local function newest(id)
  local name = call("ZREVRANGEBYLEX", NAMES, "(" .. id .. "\1", "[" .. id .. "\0", "LIMIT", 0, 1)[1]
  if not name then return end
  local m = string.sub(name, #id + 2) .. id
  return m, call("HGET", RECORDS, "\3" .. m)
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
