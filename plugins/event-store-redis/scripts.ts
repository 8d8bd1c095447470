// Lua scripts of the event store; each is atomic. A stream is a Redis stream with ids `<seq>-0`, and a hash:
//   epoch, facts  current writer     before  facts of the previous writer
//   last          last number        bytes   bytes of the stored events
//   bus           set by the writer  finished  '1' after the end
// A stream without a hash has ended. A set contains the streams of a session.
import { redisScript } from '../families/redis/index.ts'

/** Start of writing scripts. KEYS: events, hash, set. ARGV: deadline, name, ttl, epoch, facts, bus, finished. */
const PRELUDE = `
local events, hash, names = KEYS[1], KEYS[2], KEYS[3]
local deadline, name, ttl = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local epoch, facts, bus, finished = tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7] == '1'
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > deadline then return {'late'} end
local found = redis.call('HMGET', hash, 'epoch', 'last', 'bytes', 'facts', 'bus', 'finished', 'before')
local known = found[1] ~= false
local owner, last, bytes = tonumber(found[1] or 0), tonumber(found[2] or 0), tonumber(found[3] or 0)
if known and owner > epoch then return {'fenced'} end

local function renew()
  redis.call('PEXPIRE', hash, ttl)
  redis.call('PEXPIRE', events, ttl)
  redis.call('PEXPIRE', names, ttl)
end

local function note(fields)
  if bus ~= '' then fields[#fields + 1] = 'bus'; fields[#fields + 1] = bus end
  if finished then fields[#fields + 1] = 'finished'; fields[#fields + 1] = '1' end
  if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end
end
`

const WRITING = `${PRELUDE}
-- Redis has lost that this writer claimed it, and has an end of the writer before.
if known and owner < epoch and found[6] == '1' then return {'fenced'} end

-- The stream as its writer knows it: where Redis has less, what came before is gone, and a gap says so. It is gone too
-- where Redis has lost that this writer claimed the stream: what is there may be of the one before, who wrote on.
local function establish(writers)
  if known and owner == epoch and last >= writers then return end
  redis.call('HSET', hash, 'epoch', epoch, 'facts', facts, 'last', writers, 'bytes', 0, 'bus', '')
  redis.call('SADD', names, name)
  redis.call('DEL', events)
  last, bytes = writers, 0
end
`

/** ARGV 8 to 11: message, previous number, limits in events and bytes. Returns the number of the message. */
export const APPEND = redisScript(`${WRITING}
local message, previous = ARGV[8], tonumber(ARGV[9])
local maxEvents, maxBytes = tonumber(ARGV[10]), tonumber(ARGV[11])
local seq = string.format('%.0f', previous + 1)
if known and owner == epoch and last > previous then
  local stored = redis.call('XRANGE', events, seq .. '-0', seq .. '-0')[1]
  if stored and stored[2][2] ~= message then return {'taken'} end
  note({})
  renew()
  return {'stored', seq}
end
establish(previous)
redis.call('XADD', events, seq .. '-0', 'm', message)
bytes = bytes + #message
local count, first = redis.call('XLEN', events), '-'
while count > 1 and (count > maxEvents or bytes > maxBytes) do
  local oldest = redis.call('XRANGE', events, first, '+', 'COUNT', 1)[1]
  bytes = bytes - #oldest[2][2]
  count = count - 1
  first = '(' .. oldest[1]
end
if first ~= '-' then redis.call('XTRIM', events, 'MAXLEN', count) end
note({'last', seq, 'bytes', bytes})
renew()
return {'stored', seq}
`)

/** ARGV 8: number of the last message. */
export const OPEN = redisScript(`${WRITING}
local fresh = not known
if not fresh then bus = '' end
establish(tonumber(ARGV[8]))
note({})
renew()
return {'open'}
`)

/** Returns the state, with the facts of the previous writer. */
export const CLAIM = redisScript(`${PRELUDE}
if not known then return {'unknown'} end
local before = found[4]
if owner == epoch then
  if facts ~= before then return {'fenced'} end
  before = found[7] or before
else
  redis.call('HSET', hash, 'epoch', epoch, 'facts', facts, 'before', before)
end
renew()
return {'state', tostring(epoch), found[2], before, found[5] or '', found[6] or ''}
`)

export const FINISH = redisScript(`${PRELUDE}
if not known then return {'unknown'} end
finished = true
note({})
renew()
return {'finished'}
`)

/** KEYS: the hash. */
export const STATE = redisScript(`
local found = redis.call('HMGET', KEYS[1], 'epoch', 'last', 'facts', 'bus', 'finished')
if not found[1] then return {'unknown'} end
return {'state', found[1], found[2], found[3], found[4] or '', found[5] or ''}
`)

/** KEYS: events, hash. ARGV: last seen number, maximum bytes or ''. Returns numbers and messages if there is no gap. */
export const AFTER = redisScript(`
local events, seen, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local last = tonumber(redis.call('HGET', KEYS[2], 'last') or -1)
if seen > last then return {'gone'} end
if seen == last then return {'events'} end
local from = '(' .. ARGV[1] .. '-0'
local oldest = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
local first = oldest and tonumber(string.match(oldest[1], '^%d+'))
local newest = string.format('%.0f-0', last)
if not first or first > seen + 1 or #redis.call('XRANGE', events, newest, newest) == 0 then return {'gone'} end
if redis.call('XLEN', events) ~= last - first + 1
  and #redis.call('XRANGE', events, from, '+') ~= last - seen then return {'gone'} end
local reply, bytes = {'events'}, 0
while most ~= 0 do
  local some = redis.call('XRANGE', events, from, '+', 'COUNT', 20)
  for _, event in ipairs(some) do
    bytes = bytes + #event[2][2]
    if most and #reply > 1 and bytes > most then return reply end
    reply[#reply + 1] = event[1]
    reply[#reply + 1] = event[2][2]
    from = '(' .. event[1]
  end
  if #some == 0 then break end
end
return reply
`)

/** KEYS: set, events, hash. ARGV: the stream. */
export const DROP_STREAM = redisScript(`
redis.call('DEL', KEYS[2], KEYS[3])
redis.call('SREM', KEYS[1], ARGV[1])
return {}
`)

/** KEYS: set. ARGV: prefixes of events and hashes, in the same slot. */
export const DROP_SESSION = redisScript(`
for _, name in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  redis.call('DEL', ARGV[1] .. name, ARGV[2] .. name)
end
redis.call('DEL', KEYS[1])
return {}
`)
