-- record.lua reads and writes records. The records hash has these fields:
--
--   id            the record that lives under the id, as the producer gave it
--   "\1" id       its progress: what happened to it since, none if nothing did
--   "\2" id       its successor, in the form of a record
--   "\3" seq id   a finished record: when, length of its progress, progress, record
--   "\4" token    a grant, by its first token: see grants.lua
--
-- Body, key and headers are opaque here. Other numbers are big-endian, as are those in members.

local RECORD = ">BI6I6I6I6I6I4I2I4I4"
local PROGRESS, PROGRESS_SIZE = ">BI6I6I4I4I7I6I2", 36
local LEASED, FOLLOWED, DEDUPED, DONE_FLAG, HISTORY, KEYED_FLAG, UNTOLD_FLAG = 1, 2, 4, 8, 16, 32, 64
local BODY = 46 -- where a record's key begins, headers and body follow

-- A place is priority and due time in one number: the bands of the priorities follow one another.
local function band(priority) return (9 - priority) * BAND end

local function number(n) return string.format("%d", n) end

local function member(r) return pack(">I6", r.seq) .. r.id end

-- parse returns a record, progress is false if nothing happened to it.
local function parse(id, blob, progress)
  local r = { id = id, blob = blob }
  r.priority, r.seq, r.first, r.enqueued, r.expirein, r.dedup, r.max, r.keylen, r.headlen, r.headsize =
    unpick(RECORD, blob)
  if not progress then
    r.due, r.attempts, r.deliveries, r.token, r.till, r.by, r.reason = r.first, 0, 0, 0, 0, "", ""
    return r
  end
  local flags, _, by
  flags, _, r.due, r.attempts, r.deliveries, r.token, r.till, by = unpick(PROGRESS, progress)
  r.leased, r.successor = flags % 2 == 1, flags % 4 >= 2
  r.by = string.sub(progress, PROGRESS_SIZE + 1, PROGRESS_SIZE + by)
  r.reason = string.sub(progress, PROGRESS_SIZE + by + 1)
  if bit.band(flags, HISTORY) ~= 0 then
    local n = unpick(">I2", r.reason)
    r.reason, r.history = string.sub(r.reason, 3, 2 + n), string.sub(r.reason, 3 + n)
  end
  return r
end

-- tail is what follows the name of the claimer in the progress.
local function tail(r)
  if not r.history then return r.reason end
  return pack(">I2", #r.reason) .. r.reason .. r.history
end

-- progress_of is the inverse of what parse reads. Some flags spare an ack the look at the record.
local function progress_of(r)
  local flags = (r.leased and LEASED or 0) + (r.successor and FOLLOWED or 0) + (r.dedup > 0 and DEDUPED or 0)
    + (r.history and HISTORY or 0) + (r.keylen > 0 and KEYED_FLAG or 0)
    + (r.done and DONE_FLAG or 0) + (r.untold and UNTOLD_FLAG or 0)
  return pack(PROGRESS, flags, r.seq, r.due, r.attempts, r.deliveries, r.token, r.till, #r.by) .. r.by .. tail(r)
end

local note
do -- what is local here is not counted: a script may have 200 locals
  local ATTEMPT, ATTEMPT_SIZE, MOST_ATTEMPTS, NOTE = ">I4I6I2B", 13, 10, 200

  -- note keeps an attempt that failed: its delivery, its end, who had it, the reason. A history is a
  -- byte with the number of attempts, and those, oldest first.
  function note(r, ended, reason)
    if #reason > NOTE then
      local n = NOTE -- not inside of a character
      while n > 0 and bit.band(string.byte(reason, n + 1), 192) == 128 do n = n - 1 end
      reason = string.sub(reason, 1, n)
    end
    local history = r.history or "\0"
    local n, from = string.byte(history), 2
    if n == MOST_ATTEMPTS then
      local _, _, by, said = unpick(ATTEMPT, history, from)
      n, from = n - 1, from + ATTEMPT_SIZE + by + said
    end
    r.history = string.char(n + 1) .. string.sub(history, from)
      .. pack(ATTEMPT, r.deliveries, ended, #r.by, #reason) .. r.by .. reason
  end
end

local function bury_blob(r, finished)
  local p = progress_of(r)
  return pack(">I6I2", finished, #p) .. p .. r.blob
end

-- exhume returns what bury_blob put together: instant, progress, record.
local function exhume(value)
  local finished, n = unpick(">I6I2", value)
  return finished, string.sub(value, 9, 8 + n), string.sub(value, 9 + n)
end
