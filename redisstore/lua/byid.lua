-- byid.lua finds records for calls by id.

-- newest returns the member of the newest dead record of an id.
local function newest(id)
  local name = call("ZREVRANGEBYLEX", NAMES, "(" .. id .. "\1", "[" .. id .. "\0", "LIMIT", 0, 1)[1]
  return name and string.sub(name, #id + 2) .. id
end

-- row is a record in a reply: id, record, progress and instant of death, -1 for the living.
local function row(reply, r)
  reply[#reply + 1] = r.id
  reply[#reply + 1] = r.blob
  reply[#reply + 1] = progress_of(r)
  reply[#reply + 1] = -1
  return reply
end

-- dead_row is a dead record in a reply.
local function dead_row(reply, m, value)
  local finished, progress, blob = exhume(value)
  reply[#reply + 1] = string.sub(m, 7)
  reply[#reply + 1] = blob
  reply[#reply + 1] = progress
  reply[#reply + 1] = finished
  return reply
end

-- remove_dead takes a dead record out of the queue.
local function remove_dead(m)
  call("ZREM", DEAD, m)
  call("ZREM", NAMES, string.sub(m, 7) .. "\0" .. string.sub(m, 1, 6))
  call("HDEL", RECORDS, "\3" .. m)
end

-- leave ends a script that answers about one record.
local function leave(reply)
  notify()
  save()
  return reply
end
