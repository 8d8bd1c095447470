// The index of all sessions: who holds how many, and which of them idle, for bounds that hold for all nodes together.
// All its keys have one hash tag; KEYS[1] is what they begin with:
//   of:<holder>     his sessions, by when they were used last       idle:<holder>  those of them that idle
//   idle            every idle session, `<digest>:<holder>`         holders        how many idle ones each has
// For store.ts.
import { redisScript } from '../families/redis/index.ts'

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

/** ARGV: digest, holder, how long a session idles, how many he may have (0: any number). Gives whether this is one. */
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

/** ARGV: how long a session idles, how many may, then by turns digest, holder, '1' for in use, and how long
 * that was ago. Gives who must go. */
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
