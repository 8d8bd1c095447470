// How tasks end at Redis, and what is forgotten of them then: the scripts of scripts.ts that end one, in the same words.
import { redisScript } from '../families/redis/index.ts'
import { LINES } from './lines.ts'

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

/**
 * ARGV: d, fence, state, ttl, cost, bytes of all, of one, then the outcome where there is one: without bounds where it is small.
 * Gives also `holder` and `full`.
 */
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

/** ARGV: d, cost. `again`: it is cancelled already. */
export const CANCEL = redisScript(`${OVER}
local d = ARGV[2]
local found = find(d)
if not found then return {'no'} end
if hasEnded(found.state) then return {found.state == 'cancelled' and 'again' or 'no'} end
return finish(d, found.till, 'cancelled', nil, true, sizeOver(d, ARGV[3], nil))
`)
