// What happens to tasks at Redis, each operation whole or not at all. For store.ts; lines.ts has the keys. All answer
// `{word, ...}`; `late` where nothing was done, for whoever asked has given up. `no` is false, `done` true.
import { redisScript } from '../families/redis/index.ts'
import { LINES } from './lines.ts'

/**
 * ARGV: d, h, q, ttl, open of one holder, kept of one, kept of all, bytes of all, of one, size, id, holder, owner, queue, body.
 * Gives also `holder` and `full`; `done` where it is there already.
 */
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

/** ARGV: d. Gives the record. */
export const GET = redisScript(`${LINES}
if not find(ARGV[2]) then return {'no'} end
return record('done', ARGV[2])
`)

/** ARGV: d. Gives what is small of it. */
export const LOOK = redisScript(`${LINES}
if not find(ARGV[2]) then return {'no'} end
local reply = summary(ARGV[2])
table.insert(reply, 1, 'done')
return reply
`)

/** ARGV: h, how many, the serial before which. Gives for each how many fields there are, then these. */
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

/**
 * ARGV: lease, token, then for each queue q, how many may run, and of one holder. Gives the record. Asked again with the token of
 * a claim whose answer was lost it gives what that gave.
 */
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

/** ARGV: lease, token. Gives the record. */
export const CLAIM_LAPSED = redisScript(`${CLAIMS}
for _, d in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'LIMIT', 0, 100)) do
  local f = factsOf(d)
  if f and find(d) then return lend(d, f) end
  redis.call('ZREM', P .. 'leases', d)
  drop(d)
end
return {'no'}
`)

/** ARGV: lease, then d and fence by turns. Gives the versions; empty where the lease is lost. */
export const RENEW = redisScript(`${LINES}
local reply = {'done'}
for index = 3, #ARGV, 2 do
  local found = held(ARGV[index], ARGV[index + 1])
  if found then hold(ARGV[index], tonumber(ARGV[2])) end
  reply[#reply + 1] = found and found.version or ''
end
return reply
`)

/** ARGV: d, fence. True also where it was released with this fence, and nobody has claimed it since. */
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

/** ARGV: d, fence, bytes of all, of one, note. Gives also `holder` and `full`. */
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

/** ARGV: d, fence, bytes of all, of one, key, text. Gives also `holder` and `full`. */
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
 * ARGV: d, bytes of all, of one holder, of all answers to the task, then keys and answers by turns. Gives how many were questions
 * without one; `holder`, `full` and `task` where there is no room for these.
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

/** Gives by turns a queue, how many wait, how many run, and for how long the one has waited that waits longest. */
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
