// Lua scripts of the grant store; each is atomic. Replies: `{word, ...}` with `done`, `no`, `late` or `full`.
// A text is a string; a set is a JSON string `[member, expiry, ...]` in insertion order.
// Pending entries have an index with one hash tag:
//   order    sorted set: keys by write time        ends   sorted set: keys by expiry
//   sizes    hash: bytes of each key; '' is the sum
import { redisScript } from '../families/redis/index.ts'

/** Order of the index keys in KEYS. */
export const INDEX = ['order', 'ends', 'sizes'] as const

/** KEYS: entry, then the index if pending. ARGV: deadline by the Redis clock, maximum entries, maximum bytes. */
const COMMON = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[1]) then return {'late'} end
local key, order, ends, sizes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function strike(name)
  local size = redis.call('HGET', sizes, name)
  redis.call('ZREM', order, name)
  redis.call('ZREM', ends, name)
  if not size then return end
  redis.call('HDEL', sizes, name)
  if redis.call('HINCRBY', sizes, '', -size) <= 0 then redis.call('DEL', sizes) end
end

local function forget(name)
  redis.call('DEL', name)
  if order then strike(name) end
end

local function isTooMuch()
  if redis.call('ZCARD', order) > tonumber(ARGV[2]) then return true end
  return tonumber(redis.call('HGET', sizes, '')) > tonumber(ARGV[3])
end

local function enlist(size, ttl)
  strike(key)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 100)) do strike(name) end
  local last = redis.call('ZRANGE', order, -1, -1, 'WITHSCORES')[2] or '0'
  redis.call('ZADD', order, tonumber(last) + 1, key)
  redis.call('ZADD', ends, now + tonumber(ttl), key)
  redis.call('HSET', sizes, key, size)
  redis.call('HINCRBY', sizes, '', size)
  while isTooMuch() do
    local oldest = redis.call('ZRANGE', order, 0, 0)[1]
    if not oldest or oldest == key then break end
    forget(oldest)
  end
  local left = redis.call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2] - now
  for index = 2, 4 do redis.call('PEXPIRE', KEYS[index], string.format('%.0f', left + 1000)) end
end

local function write(value, ttl)
  if tonumber(ttl) <= 0 then
    forget(key)
    return {'done'}
  end
  local size = 500 + #value + 4 * #key
  if order and size > tonumber(ARGV[3]) then return {'full'} end
  redis.call('SET', key, value, 'PX', ttl)
  if order then enlist(size, ttl) end
  return {'done'}
end
`

/** ARGV: ttl, text. */
export const SET = redisScript(`${COMMON}
return write(ARGV[5], ARGV[4])
`)

/** ARGV: ttl, text. */
export const ADD = redisScript(`${COMMON}
if redis.call('EXISTS', key) == 1 then return {'no'} end
return write(ARGV[5], ARGV[4])
`)

/** ARGV: ttl, text, expected text. */
export const REPLACE = redisScript(`${COMMON}
if redis.call('GET', key) ~= ARGV[6] then return {'no'} end
return write(ARGV[5], ARGV[4])
`)

/** Also returns the text. */
export const TAKE = redisScript(`${COMMON}
local text = redis.call('GET', key)
if not text then return {'no'} end
forget(key)
return {'done', text}
`)

/** ARGV: other keys of this kind with the same hash tag. */
export const DELETE = redisScript(`${COMMON}
forget(key)
for index = 4, #ARGV do forget(ARGV[index]) end
return {'done'}
`)

const SETS = `${COMMON}
local function read()
  local list, text = {}, redis.call('GET', key)
  local found = text and cjson.decode(text) or {}
  for index = 1, #found, 2 do
    if found[index + 1] > now then list[#list + 1] = {found[index], found[index + 1]} end
  end
  return list
end

local function save(list)
  local flat, last = {}, now
  for index, one in ipairs(list) do
    flat[2 * index - 1], flat[2 * index] = one[1], one[2]
    last = math.max(last, one[2])
  end
  if #list == 0 then
    forget(key)
    return {'done'}
  end
  return write(cjson.encode(flat), string.format('%.0f', last - now))
end

local function without(list, member)
  local others, own = {}, nil
  for _, one in ipairs(list) do
    if one[1] == member then own = one else others[#others + 1] = one end
  end
  return others, own
end
`

/** ARGV: ttl, member, maximum members. Returns the number of members. */
export const JOIN = redisScript(`${SETS}
local others, own = without(read(), ARGV[5])
local till = math.max(now + tonumber(ARGV[4]), own and own[2] or 0)
if till > now then others[#others + 1] = {ARGV[5], till} end
local list = {}
for index = math.max(1, #others - tonumber(ARGV[6]) + 1), #others do list[#list + 1] = others[index] end
local reply = save(list)
reply[2] = tostring(#list)
return reply
`)

/** ARGV: member. */
export const LEAVE = redisScript(`${SETS}
local others, own = without(read(), ARGV[4])
if not own then return {'no'} end
return save(others)
`)

/** Also returns the members. */
export const MEMBERS = redisScript(`${SETS}
local reply = {'done'}
for index, one in ipairs(read()) do reply[index + 1] = one[1] end
return reply
`)
