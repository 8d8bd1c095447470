// What the scripts of the task store begin with: the index of all tasks, and how a task comes into a line and leaves it. All of
// it has one hash tag, for it is counted together. KEYS[1] is what the keys begin with; `d`, `h` and `q` are digests:
//   task:<d>         hash: the record                         facts     hash: of each task `<q> <h> <bytes> <state>`
//   ends             sorted set: tasks by their end           leases    sorted set: those that run, by the end of the lease
//   holder:<h>       sorted set: tasks by their serial        open      hash: how many of each holder are not over
//   queued:<q>       sorted set: those that wait, the same    lane:<q>:<h>  the same, of one holder
//   turns:<q>        sorted set: holders who wait, by turn    busy      hash: how many run of each `<q>` and `<q> <h>`
//   held             hash: bytes of each holder
//   names            hash: queues where something waits or runs
//   sums             hash: bytes, the last serial, turn and number of a change
//   news             stream: changes                          claim:<token>  string: the task that this claim gave
// For scripts.ts.

/** The states as the index has them: queued, running, ended. ARGV[1] is until when it may run, by the clock of Redis. */
export const LINES = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[1]) then return {'late'} end
local P = KEYS[1]
local whole = function(number) return string.format('%.0f', number) end

local function factsOf(d)
  local text = redis.call('HGET', P .. 'facts', d)
  if not text then return nil end
  local q, h, size, state = string.match(text, '^(%S+) (%S+) (%d+) (%a)$')
  return {q = q, h = h, size = tonumber(size), state = state}
end

local function keepFacts(d, f)
  redis.call('HSET', P .. 'facts', d, f.q .. ' ' .. f.h .. ' ' .. whole(f.size) .. ' ' .. f.state)
end

local function less(hash, field)
  if redis.call('HINCRBY', P .. hash, field, -1) <= 0 then redis.call('HDEL', P .. hash, field) end
end

local function busy(field) return tonumber(redis.call('HGET', P .. 'busy', field) or 0) end

local function leaveLine(d, f)
  if f.state == 'q' then
    local lane = P .. 'lane:' .. f.q .. ':' .. f.h
    redis.call('ZREM', P .. 'queued:' .. f.q, d)
    redis.call('ZREM', lane, d)
    if redis.call('EXISTS', lane) == 0 then redis.call('ZREM', P .. 'turns:' .. f.q, f.h) end
  elseif f.state == 'r' then
    redis.call('ZREM', P .. 'leases', d)
    less('busy', f.q)
    less('busy', f.q .. ' ' .. f.h)
  end
  if redis.call('EXISTS', P .. 'queued:' .. f.q) == 0 and busy(f.q) == 0 then redis.call('HDEL', P .. 'names', f.q) end
end

-- Of a holder whose tasks an older version kept, the sum of what is known of them.
local function heldBy(h)
  local held = tonumber(redis.call('HGET', P .. 'held', h) or nil)
  if held then return held end
  held = 0
  for _, d in ipairs(redis.call('ZRANGE', P .. 'holder:' .. h, 0, -1)) do
    local f = factsOf(d)
    if f then held = held + f.size end
  end
  return held
end

local function drop(d)
  local f = factsOf(d)
  redis.call('ZREM', P .. 'ends', d)
  redis.call('DEL', P .. 'task:' .. d)
  if not f then return end
  leaveLine(d, f)
  if f.state ~= 'e' then less('open', f.h) end
  local held = heldBy(f.h) - f.size
  redis.call('ZREM', P .. 'holder:' .. f.h, d)
  redis.call('HDEL', P .. 'facts', d)
  if redis.call('EXISTS', P .. 'holder:' .. f.h) == 0 then redis.call('HDEL', P .. 'held', f.h)
  else redis.call('HSET', P .. 'held', f.h, whole(held)) end
  redis.call('HINCRBY', P .. 'sums', 'bytes', whole(-f.size))
end

local function sweep()
  for _, d in ipairs(redis.call('ZRANGEBYSCORE', P .. 'ends', '-inf', now, 'LIMIT', 0, 100)) do drop(d) end
end

local function nextTurn(q, h)
  redis.call('ZADD', P .. 'turns:' .. q, redis.call('HINCRBY', P .. 'sums', 'turn', 1), h)
end

local function joinLine(d, f, serial, queue)
  redis.call('ZADD', P .. 'queued:' .. f.q, serial, d)
  redis.call('ZADD', P .. 'lane:' .. f.q .. ':' .. f.h, serial, d)
  redis.call('HSET', P .. 'names', f.q, queue)
  if not redis.call('ZSCORE', P .. 'turns:' .. f.q, f.h) then nextTurn(f.q, f.h) end
  f.state = 'q'
end

local function last()
  return tonumber(redis.call('ZRANGE', P .. 'ends', -1, -1, 'WITHSCORES')[2] or now)
end

local function expire(f)
  local left = whole(last() - now + 3600000)
  for _, name in ipairs({'ends', 'facts', 'sums', 'open', 'held', 'busy', 'leases', 'names', 'news', 'holder:' .. f.h,
    'queued:' .. f.q, 'lane:' .. f.q .. ':' .. f.h, 'turns:' .. f.q}) do
    redis.call('PEXPIRE', P .. name, left)
  end
end

local function find(d)
  local found = redis.call('HMGET', P .. 'task:' .. d, 'state', 'fence', 'version', 'until')
  if not found[1] or tonumber(found[4]) <= now then return nil end
  return {state = found[1], fence = found[2], version = found[3], till = tonumber(found[4])}
end

-- A full Redis refuses a script that begins with what may take room, and lets one go on that began with what does not.
local function hold(d, lease)
  redis.call('ZREM', P .. 'leases', d)
  redis.call('ZADD', P .. 'leases', now + lease, d)
end

local function hasEnded(state) return state ~= 'queued' and state ~= 'running' end

local function held(d, fence)
  local found = find(d)
  if found and found.state == 'running' and found.fence == fence then return found end
  return nil
end

local function tell(d)
  local about = redis.call('HMGET', P .. 'task:' .. d, 'id', 'queue', 'state')
  local number = redis.call('HINCRBY', P .. 'sums', 'news', 1)
  redis.call('XADD', P .. 'news', 'MAXLEN', '~', 10000, '*', 'n', number, 'i', about[1], 'q', about[2], 's', about[3])
end

local function changed(d)
  redis.call('HINCRBY', P .. 'task:' .. d, 'version', 1)
  redis.call('HSET', P .. 'task:' .. d, 'updated', whole(now))
  tell(d)
end

local function grow(d, f, bytes)
  redis.call('HSET', P .. 'held', f.h, whole(heldBy(f.h) + bytes))
  f.size = f.size + bytes
  keepFacts(d, f)
  redis.call('HINCRBY', P .. 'sums', 'bytes', whole(bytes))
end

-- Why there is no room for so many bytes more of this holder; nil where there is.
local function refusalOf(h, bytes, all, each)
  if bytes <= 0 then return nil end
  if heldBy(h) + bytes > tonumber(each) then return 'holder' end
  if tonumber(redis.call('HGET', P .. 'sums', 'bytes') or 0) + bytes > tonumber(all) then return 'full' end
  return nil
end

-- An older version had the owner as the first line of the body alone.
local function ownerOf(d)
  return redis.call('HGET', P .. 'task:' .. d, 'owner')
    or string.match(redis.call('HGET', P .. 'task:' .. d, 'body') or '', '^[^\\n]*')
end

-- What is small of a task: names and values by turns.
local function summary(d)
  local names = {'id', 'holder', 'queue', 'serial', 'state', 'created', 'updated', 'until', 'version', 'fence', 'runs', 'open',
    'note'}
  local values = redis.call('HMGET', P .. 'task:' .. d, unpack(names))
  local flat = {'owner', ownerOf(d)}
  for index, name in ipairs(names) do
    if values[index] then
      flat[#flat + 1] = name
      flat[#flat + 1] = values[index]
    end
  end
  return flat
end

local function record(word, d)
  local reply = redis.call('HGETALL', P .. 'task:' .. d)
  reply[#reply + 1] = 'owner'
  reply[#reply + 1] = ownerOf(d)
  table.insert(reply, 1, word)
  return reply
end
`
