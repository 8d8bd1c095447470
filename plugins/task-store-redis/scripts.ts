// Lua scripts of the task store; each is atomic. Replies: `{word, ...}` with `done`, `no`, `late` after ARGV[1], or
// `holder`, `full` or `task` without room.
// All keys have one hash tag; KEYS[1] is their prefix, and `d`, `h` and `q` are digests:
//   task:<d>         hash: the record                         facts     hash: of each task `<q> <h> <bytes> <state>`
//   ends             sorted set: tasks by expiry              leases    sorted set: running tasks by lease expiry
//   holder:<h>       sorted set: tasks by serial              open      hash: number of open tasks by holder
//   queued:<q>       sorted set: queued tasks by serial       lane:<q>:<h>  the same for one holder
//   turns:<q>        sorted set: waiting holders by turn      busy      hash: running tasks of each `<q>` and `<q> <h>`
//   held             hash: bytes of each holder               names     hash: queues with open tasks
//   sums             hash: bytes, last serial, last turn, number of the last change
//   news             stream: changes                          claim:<token>  string: the task of this claim
import { redisScript } from '../families/redis/index.ts'

/** Task states in the index: queued, running, ended. ARGV[1]: deadline by the Redis clock. */
const LINES = `
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

/** ARGV: d, h, q, ttl, limits (open, kept, all kept, all bytes, bytes), size, id, holder, owner, queue, body. */
export const CREATE = redisScript(`${LINES}
local d, h, q, ttl, size = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[11])
if find(d) then return {'done'} end
if factsOf(d) then drop(d) end
sweep()
if redis.call('ZCARD', P .. 'holder:' .. h) >= tonumber(ARGV[7]) then return {'holder'} end
if tonumber(redis.call('HGET', P .. 'open', h) or 0) >= tonumber(ARGV[6]) then return {'holder'} end
if redis.call('ZCARD', P .. 'ends') >= tonumber(ARGV[8]) then return {'full'} end
local refusal = refusalOf(h, size, ARGV[9], ARGV[10])
if refusal then return {refusal} end
local serial = whole(math.max(now, tonumber(redis.call('HGET', P .. 'sums', 'serial') or 0) + 1))
local at = whole(now)
redis.call('HSET', P .. 'task:' .. d, 'id', ARGV[12], 'holder', ARGV[13], 'owner', ARGV[14], 'queue', ARGV[15],
  'body', ARGV[16], 'serial', serial, 'state', 'queued', 'created', at, 'updated', at, 'until', whole(now + ttl), 'version', 1,
  'fence', 0, 'runs', 0, 'open', 0)
redis.call('PEXPIRE', P .. 'task:' .. d, whole(ttl + 3600000))
redis.call('HSET', P .. 'sums', 'serial', serial)
redis.call('ZADD', P .. 'ends', now + ttl, d)
redis.call('ZADD', P .. 'holder:' .. h, serial, d)
redis.call('HINCRBY', P .. 'open', h, 1)
local f = {q = q, h = h, size = 0}
joinLine(d, f, serial, ARGV[15])
grow(d, f, size)
tell(d)
expire(f)
return {'done'}
`)

/** ARGV: d. Returns the record. */
export const GET = redisScript(`${LINES}
if not find(ARGV[2]) then return {'no'} end
return record('done', ARGV[2])
`)

/** ARGV: d. Returns the small fields. */
export const LOOK = redisScript(`${LINES}
if not find(ARGV[2]) then return {'no'} end
local reply = summary(ARGV[2])
table.insert(reply, 1, 'done')
return reply
`)

/** ARGV: h, limit, serial to start before. Returns for each task the number of fields, then these. */
export const LIST = redisScript(`${LINES}
sweep()
local reply = {'done'}
local of = redis.call('ZRANGE', P .. 'holder:' .. ARGV[2], ARGV[4], '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[3])
for _, d in ipairs(of) do
  if find(d) then
    local flat = summary(d)
    reply[#reply + 1] = tostring(#flat)
    for _, text in ipairs(flat) do reply[#reply + 1] = text end
  end
end
return reply
`)

const CLAIMS = `${LINES}
local lease = tonumber(ARGV[2])
local token = P .. 'claim:' .. ARGV[3]

local function lend(d, f)
  hold(d, lease)
  redis.call('HINCRBY', P .. 'task:' .. d, 'fence', 1)
  changed(d)
  redis.call('SET', token, d .. ' ' .. redis.call('HGET', P .. 'task:' .. d, 'fence'), 'PX', 60000)
  expire(f)
  return record('done', d)
end

sweep()
local before = redis.call('GET', token)
if before then
  local d, fence = string.match(before, '^(%S+) (%d+)$')
  if held(d, fence) then
    hold(d, lease)
    return record('done', d)
  end
end
`

/** ARGV: lease, token, then q, limit and holder limit of each queue. A repeated token returns the same record. */
export const CLAIM = redisScript(`${CLAIMS}
local function first(q, h)
  for _ = 1, 100 do
    local d = redis.call('ZRANGE', P .. 'lane:' .. q .. ':' .. h, 0, 0)[1]
    if not d then return nil end
    if find(d) then return d end
    drop(d)
  end
  return nil
end

local function ready(q, each)
  local from = 0
  while true do
    local holders = redis.call('ZRANGE', P .. 'turns:' .. q, from, from + 49)
    for _, h in ipairs(holders) do
      local d = busy(q .. ' ' .. h) < each and first(q, h)
      if d then return d, h end
    end
    if #holders < 50 then return nil end
    from = from + 50
  end
end

for index = 4, #ARGV, 3 do
  local q = ARGV[index]
  if busy(q) < tonumber(ARGV[index + 1]) then
    local d, h = ready(q, tonumber(ARGV[index + 2]))
    if d then
      local f = factsOf(d)
      local queue = redis.call('HGET', P .. 'task:' .. d, 'queue')
      leaveLine(d, f)
      f.state = 'r'
      keepFacts(d, f)
      redis.call('HSET', P .. 'names', q, queue)
      redis.call('HINCRBY', P .. 'busy', q, 1)
      redis.call('HINCRBY', P .. 'busy', q .. ' ' .. h, 1)
      if redis.call('ZSCORE', P .. 'turns:' .. q, h) then nextTurn(q, h) end
      redis.call('HSET', P .. 'task:' .. d, 'state', 'running')
      redis.call('HINCRBY', P .. 'task:' .. d, 'runs', 1)
      return lend(d, f)
    end
  end
end
return {'no'}
`)

/** ARGV: lease, token. Returns the record. */
export const CLAIM_LAPSED = redisScript(`${CLAIMS}
for _, d in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'LIMIT', 0, 100)) do
  local f = factsOf(d)
  if f and find(d) then return lend(d, f) end
  redis.call('ZREM', P .. 'leases', d)
  drop(d)
end
return {'no'}
`)

/** ARGV: lease, then pairs of d and fence. Returns the versions; empty for a lost lease. */
export const RENEW = redisScript(`${LINES}
local reply = {'done'}
for index = 3, #ARGV, 2 do
  local found = held(ARGV[index], ARGV[index + 1])
  if found then hold(ARGV[index], tonumber(ARGV[2])) end
  reply[#reply + 1] = found and found.version or ''
end
return reply
`)

/** ARGV: d, fence. True also if this fence released it before and it was not claimed since. */
export const RELEASE = redisScript(`${LINES}
local d = ARGV[2]
if not held(d, ARGV[3]) then
  local found = find(d)
  return {found and found.state == 'queued' and found.fence == ARGV[3] and 'again' or 'no'}
end
local f = factsOf(d)
leaveLine(d, f)
local about = redis.call('HMGET', P .. 'task:' .. d, 'serial', 'queue')
redis.call('HSET', P .. 'task:' .. d, 'state', 'queued')
joinLine(d, f, about[1], about[2])
keepFacts(d, f)
changed(d)
expire(f)
return {'done'}
`)

/** ARGV: d, fence, maximum bytes in total and per holder, note. Also replies `holder` or `full`. */
export const NOTE = redisScript(`${LINES}
local d = ARGV[2]
if not held(d, ARGV[3]) then return {'no'} end
local f = factsOf(d)
local bytes = #ARGV[6] - #(redis.call('HGET', P .. 'task:' .. d, 'note') or '')
local refusal = refusalOf(f.h, bytes, ARGV[4], ARGV[5])
if refusal then return {refusal} end
redis.call('HSET', P .. 'task:' .. d, 'note', ARGV[6])
grow(d, f, bytes)
changed(d)
return {'done'}
`)

/** ARGV: d, fence, maximum bytes in total and per holder, key, text. Also replies `holder` or `full`. */
export const ASK = redisScript(`${LINES}
local d, key, text = ARGV[2], ARGV[6], ARGV[7]
if not held(d, ARGV[3]) then return {'no'} end
local task = P .. 'task:' .. d
if redis.call('HEXISTS', task, 'k:' .. key) == 1 then return {'done'} end
local f, bytes = factsOf(d), #text + 2 * #key + 100
local refusal = refusalOf(f.h, bytes, ARGV[4], ARGV[5])
if refusal then return {refusal} end
local number = redis.call('HINCRBY', task, 'asked', 1)
redis.call('HINCRBY', task, 'open', 1)
redis.call('HSET', task, 'k:' .. key, number, 'q:' .. number, key, 't:' .. number, text)
grow(d, f, bytes)
changed(d)
return {'done'}
`)

/**
 * ARGV: d, limits (all bytes, bytes, answers), then pairs of key and answer. Returns the number of accepted answers.
 */
export const ANSWER = redisScript(`${LINES}
local d = ARGV[2]
local found = find(d)
if not found or hasEnded(found.state) then return {'done', '0'} end
local task, taken, bytes = P .. 'task:' .. d, {}, 0
for index = 6, #ARGV, 2 do
  local number = redis.call('HGET', task, 'k:' .. ARGV[index])
  if number and redis.call('HEXISTS', task, 'a:' .. number) == 0 then
    taken[#taken + 1] = {'a:' .. number, ARGV[index + 1]}
    bytes = bytes + #ARGV[index + 1]
  end
end
if #taken == 0 then return {'done', '0'} end
local before = 0
for number = 1, math.min(tonumber(redis.call('HGET', task, 'asked') or 0), 100) do
  before = before + #(redis.call('HGET', task, 'a:' .. number) or '')
end
if before + bytes > tonumber(ARGV[5]) then return {'task'} end
local f = factsOf(d)
local refusal = refusalOf(f.h, bytes, ARGV[3], ARGV[4])
if refusal then return {refusal} end
for _, pair in ipairs(taken) do redis.call('HSET', task, pair[1], pair[2]) end
redis.call('HINCRBY', task, 'open', -#taken)
grow(d, f, bytes)
changed(d)
return {'done', tostring(#taken)}
`)

/** Returns for each queue: name, queued tasks, running tasks, age of the oldest queued task. */
export const DEPTHS = redisScript(`${LINES}
sweep()
local reply = {'done'}
local names = redis.call('HGETALL', P .. 'names')
for index = 1, #names, 2 do
  local queued = P .. 'queued:' .. names[index]
  local oldest = redis.call('ZRANGE', queued, 0, 0)[1]
  local created = oldest and redis.call('HGET', P .. 'task:' .. oldest, 'created')
  local waited = created and math.max(0, now - tonumber(created)) or 0
  for _, value in ipairs({names[index + 1], redis.call('ZCARD', queued), busy(names[index]), waited}) do
    reply[#reply + 1] = type(value) == 'number' and whole(value) or value
  end
end
return reply
`)

const OVER = `${LINES}
-- What it costs once it is over: \`cost\` beside its texts.
local function sizeOver(d, cost, outcome)
  local size = tonumber(cost) + #(outcome or '') + #ownerOf(d)
  for _, text in ipairs(redis.call('HMGET', P .. 'task:' .. d, 'id', 'holder', 'queue', 'note')) do size = size + #(text or '') end
  return size
end

-- What nobody needs of a task that is over.
local function forget(d)
  local task = P .. 'task:' .. d
  local owner = ownerOf(d)
  local asked = math.min(tonumber(redis.call('HGET', task, 'asked') or 0), 100)
  for number = 1, asked do
    local key = redis.call('HGET', task, 'q:' .. number) or ''
    redis.call('HDEL', task, 'k:' .. key, 'q:' .. number, 't:' .. number, 'a:' .. number)
  end
  redis.call('HDEL', task, 'body', 'asked')
  redis.call('HSET', task, 'owner', owner, 'open', 0)
end

local function finish(d, till, state, outcome, isCancelled, size)
  local f = factsOf(d)
  leaveLine(d, f)
  forget(d)
  f.state = 'e'
  if isCancelled then redis.call('HINCRBY', P .. 'task:' .. d, 'fence', 1) end
  less('open', f.h)
  redis.call('HSET', P .. 'task:' .. d, 'state', state)
  if outcome then redis.call('HSET', P .. 'task:' .. d, 'outcome', outcome) end
  redis.call('HSET', P .. 'task:' .. d, 'until', whole(till))
  redis.call('PEXPIRE', P .. 'task:' .. d, whole(till - now + 3600000))
  redis.call('ZADD', P .. 'ends', till, d)
  grow(d, f, size - f.size)
  changed(d)
  expire(f)
  return {'done'}
end
`

/** ARGV: d, fence, state, ttl, cost, limits (all bytes, bytes), outcome (optional; a small one is not limited). */
export const END = redisScript(`${OVER}
local d = ARGV[2]
local found = find(d)
if not found or found.fence ~= ARGV[3] then return {'no'} end
if hasEnded(found.state) then return {'done'} end
if found.state ~= 'running' then return {'no'} end
local f, size = factsOf(d), sizeOver(d, ARGV[6], ARGV[9])
local refusal = refusalOf(f.h, size - f.size, ARGV[7], ARGV[8])
if refusal then return {refusal} end
return finish(d, math.max(found.till, now + tonumber(ARGV[5])), ARGV[4], ARGV[9], false, size)
`)

/** ARGV: d, cost. `again`: already cancelled. */
export const CANCEL = redisScript(`${OVER}
local d = ARGV[2]
local found = find(d)
if not found then return {'no'} end
if hasEnded(found.state) then return {found.state == 'cancelled' and 'again' or 'no'} end
return finish(d, found.till, 'cancelled', nil, true, sizeOver(d, ARGV[3], nil))
`)
