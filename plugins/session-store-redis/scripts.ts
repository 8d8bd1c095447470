// Lua scripts of the session store; each is atomic. A record is a hash:
//   opening, home, v            opening data, node that runs it, state version
//   revision, client, level     state; w:<uri> for each watched resource, wn their number, wb their bytes
//   n:<node>                    a node with a copy; b:<node> until when it is in use there
//   stream, streamNode, streamEpoch   the writer of messages outside of calls
// Another hash has the running requests (id -> node); a mark remembers the end for an hour.
// The index of all sessions has one hash tag; its KEYS[1] is the prefix:
//   of:<holder>     sessions by last use          idle:<holder>  idle sessions
//   idle            all idle sessions, `<digest>:<holder>`       holders        number of idle sessions by holder
import { redisScript } from '../families/redis/index.ts'

/** KEYS: record. ARGV: ttl, then fields and values. */
export const CREATE = redisScript(`
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {'created'}
`)

/** KEYS: record, requests, mark. ARGV: ttl, node, version, nodes without running requests (`,a,b,`), requests. */
export const ENTER = redisScript(`
local version = redis.call('HGET', KEYS[1], 'v')
if not version then return {'missing', tostring(redis.call('EXISTS', KEYS[3]))} end
for index = 5, #ARGV do
  local node = redis.call('HGET', KEYS[2], ARGV[index])
  if node and not string.find(ARGV[4], ',' .. node .. ',', 1, true) then return {'taken', ARGV[index], node} end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
for index = 5, #ARGV do redis.call('HSET', KEYS[2], ARGV[index], ARGV[2]) end
if #ARGV > 4 then redis.call('PEXPIRE', KEYS[2], ARGV[1]) end
if version == ARGV[3] then return {'entered'} end
redis.call('HSET', KEYS[1], 'n:' .. ARGV[2], '1')
return {'entered', unpack(redis.call('HGETALL', KEYS[1]))}
`)

const CHANGED = `
redis.call('HINCRBY', KEYS[1], 'v', 1)
redis.call('HSET', KEYS[1], 'n:' .. ARGV[1], '1')
return {'changed', unpack(redis.call('HGETALL', KEYS[1]))}
`

/** KEYS: record. ARGV: node, then fields and values. */
export const SET = redisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
${CHANGED}`)

/** KEYS: record. ARGV: node, URI, bytes, maximum resources, maximum bytes. */
export const WATCH = redisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
local field = 'w:' .. ARGV[2]
if redis.call('HEXISTS', KEYS[1], field) == 0 then
  local watched = redis.call('HMGET', KEYS[1], 'wn', 'wb')
  if tonumber(watched[1] or '0') >= tonumber(ARGV[4]) then return {'full'} end
  if tonumber(watched[2] or '0') + tonumber(ARGV[3]) > tonumber(ARGV[5]) then return {'full'} end
  redis.call('HSET', KEYS[1], field, '1')
  redis.call('HINCRBY', KEYS[1], 'wn', 1)
  redis.call('HINCRBY', KEYS[1], 'wb', ARGV[3])
end
${CHANGED}`)

/** KEYS: record. ARGV: node, URI, bytes. */
export const UNWATCH = redisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
if redis.call('HDEL', KEYS[1], 'w:' .. ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'wn', -1)
  redis.call('HINCRBY', KEYS[1], 'wb', -ARGV[3])
end
${CHANGED}`)

/** KEYS: record. ARGV: node, previous home. */
export const ADOPT = redisScript(`
if redis.call('HGET', KEYS[1], 'home') ~= ARGV[2] then return {'no'} end
redis.call('HSET', KEYS[1], 'home', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'v', 1)
return {'yes'}
`)

/** KEYS: record. ARGV: node, stream. Epochs are times, so they grow even after a loss. */
export const CLAIM = redisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
local had = redis.call('HMGET', KEYS[1], 'stream', 'streamNode', 'streamEpoch')
if had[1] == ARGV[2] and had[2] == ARGV[1] then return {'claimed', had[3], had[2], had[1]} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = string.format('%.0f', math.max(tonumber(had[3] or '0') + 1, now))
redis.call('HSET', KEYS[1], 'stream', ARGV[2], 'streamNode', ARGV[1], 'streamEpoch', epoch)
return {'claimed', epoch, had[2] or '', had[1] or ''}
`)

/** KEYS: record, requests, mark. ARGV: node, '1' to end it only if idle, mark lifetime. Returns nodes. */
export const END = redisScript(`
local record = redis.call('HGETALL', KEYS[1])
if ARGV[2] == '1' then
  if #record == 0 then return {'missing'} end
  if redis.call('EXISTS', KEYS[2]) == 1 then return {'busy'} end
  local time = redis.call('TIME')
  local now = time[1] * 1000
  for index = 1, #record, 2 do
    if string.sub(record[index], 1, 2) == 'b:' and tonumber(record[index + 1]) > now then return {'busy'} end
  end
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SET', KEYS[3], '1', 'PX', ARGV[3])
if #record == 0 then return {'missing'} end
local reply = {'ended'}
for index = 1, #record, 2 do
  if string.sub(record[index], 1, 2) == 'n:' and record[index] ~= 'n:' .. ARGV[1] then
    reply[#reply + 1] = string.sub(record[index], 3)
  end
end
return reply
`)

/** KEYS: record, requests. ARGV: node, ttl, '1' if in use there. */
export const USE = redisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
local field = 'b:' .. ARGV[1]
if ARGV[3] == '1' then
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], field, string.format('%.0f', time[1] * 1000 + tonumber(ARGV[2])))
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
else
  redis.call('HDEL', KEYS[1], field)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'used'}
`)

/** KEYS: record, requests, mark. ARGV: ttl, node, stream or '', epoch, number of fields and values, these, requests. */
export const RESTORE = redisScript(`
if redis.call('EXISTS', KEYS[3]) == 1 then return {'ended'} end
local count = tonumber(ARGV[5])
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HSET', KEYS[1], unpack(ARGV, 6, 5 + count)) end
redis.call('HSET', KEYS[1], 'n:' .. ARGV[2], '1')
local epoch = tonumber(redis.call('HGET', KEYS[1], 'streamEpoch') or '0')
if ARGV[3] ~= '' and tonumber(ARGV[4]) > epoch then
  redis.call('HSET', KEYS[1], 'stream', ARGV[3], 'streamNode', ARGV[2], 'streamEpoch', ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
for index = 6 + count, #ARGV do redis.call('HSETNX', KEYS[2], ARGV[index], ARGV[2]) end
if #ARGV > 5 + count then redis.call('PEXPIRE', KEYS[2], ARGV[1]) end
return {'kept'}
`)

const COMMON = `
local prefix = KEYS[1]
local idle, holders = prefix .. 'idle', prefix .. 'holders'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function forgetIdle(digest, holder)
  if redis.call('ZREM', idle, digest .. ':' .. holder) == 0 then return end
  redis.call('ZREM', prefix .. 'idle:' .. holder, digest)
  if tonumber(redis.call('ZINCRBY', holders, -1, holder)) <= 0 then redis.call('ZREM', holders, holder) end
end
`

/** ARGV: digest, holder, idle timeout, maximum sessions (0: unlimited). Returns whether it is admitted. */
export const ADMIT = redisScript(`${COMMON}
local own = prefix .. 'of:' .. ARGV[2]
local lifetime, most = tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('ZREMRANGEBYSCORE', own, '-inf', now - lifetime)
if most > 0 and redis.call('ZCARD', own) >= most then return 0 end
redis.call('ZADD', own, now, ARGV[1])
redis.call('PEXPIRE', own, lifetime)
return 1
`)

/** ARGV: digest, holder. */
export const FORGET = redisScript(`${COMMON}
redis.call('ZREM', prefix .. 'of:' .. ARGV[2], ARGV[1])
forgetIdle(ARGV[1], ARGV[2])
return 1
`)

/** ARGV: idle timeout, maximum, then digest, holder, '1' if in use and idle time of each. Returns evicted sessions. */
export const MARK = redisScript(`${COMMON}
local lifetime, most = tonumber(ARGV[1]), tonumber(ARGV[2])
for index = 3, #ARGV, 4 do
  local digest, holder = ARGV[index], ARGV[index + 1]
  local own, at = prefix .. 'of:' .. holder, now - tonumber(ARGV[index + 3])
  if redis.call('ZSCORE', own, digest) then
    redis.call('ZADD', own, at, digest)
    redis.call('PEXPIRE', own, lifetime)
    if ARGV[index + 2] == '1' then
      forgetIdle(digest, holder)
    else
      if redis.call('ZADD', idle, at, digest .. ':' .. holder) == 1 then redis.call('ZINCRBY', holders, 1, holder) end
      redis.call('ZADD', prefix .. 'idle:' .. holder, at, digest)
      redis.call('PEXPIRE', prefix .. 'idle:' .. holder, lifetime * 2)
    end
  end
end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', idle, '-inf', now - lifetime, 'LIMIT', 0, 100)) do
  local at = string.find(member, ':', 1, true)
  forgetIdle(string.sub(member, 1, at - 1), string.sub(member, at + 1))
end
local victims = {}
while redis.call('ZCARD', idle) > most and #victims < 200 do
  local holder = redis.call('ZREVRANGE', holders, 0, 0)[1]
  if not holder then break end
  local digest = redis.call('ZRANGE', prefix .. 'idle:' .. holder, 0, 0)[1]
  if digest then
    forgetIdle(digest, holder)
    victims[#victims + 1] = digest
    victims[#victims + 1] = holder
  else
    redis.call('ZREM', holders, holder)
  end
end
return victims
`)
