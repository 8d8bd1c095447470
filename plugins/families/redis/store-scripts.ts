// The two Lua scripts of the store in Redis, with the results of core/store/apply-steps.ts. One key for each record, set or log:
//   record   hash: `#` is the version, `.<field>` a field
//   set      sorted set
//   log      hash: `l` is the last number, `b` the bytes of all messages, `<number>` a message
import { redisScript } from './commands.ts'

/** Commands in the scripts, and in the examination of Redis. */
export const STORE_COMMANDS = [
  ...(['hdel', 'hget', 'hgetall', 'hlen', 'hmget', 'hset', 'hstrlen', 'pexpire', 'pexpireat'] as const),
  ...(['pttl', 'time', 'unlink'] as const),
  ...(['zadd', 'zcard', 'zcount', 'zrangebyscore', 'zrem', 'zremrangebyrank', 'zremrangebyscore'] as const),
  ...(['zrevrangebyscore', 'zscore'] as const),
] as const

const PRELUDE = `
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Exact for integers up to 2^53 and for scores.
local function text(number) return string.format('%.17g', number) end

-- A score: a number, or '@' and milliseconds from now.
local function score(given)
  return string.sub(given, 1, 1) == '@' and text(now + tonumber(string.sub(given, 2))) or given
end

local function expires(key)
  local left = call('PTTL', key)
  return left < 0 and '' or text(now + left)
end
`

/**
 * KEYS: one for each step. ARGV: deadline, then for each step its kind, operations with their arguments, and '.'.
 * Returns `late`; `no`, time, index, found; or `done`, time, and the result of each step.
 */
export const TRANSACT = redisScript(`${PRELUDE}
if now > tonumber(ARGV[1]) then return {'late'} end

-- The number of arguments of each operation. Operations run in the order of applySteps; the first ones are conditions.
local SIZES = {
  exists = 1, version = 1, where = 3, most = 3, set = 2, unset = 1, add = 2, know = 1, ['new'] = 1,
  below = 1, atmost = 1, has = 1, lacks = 1, remove = 1, touch = 2, put = 2, keep = 1,
  after = 2, reset = 1, append = 1, trim = 2, never = 0, delete = 0, ttl = 1
}

local function never() return false end
local function delete(s)
  if s.known and s.version then s.before = call('HGETALL', s.key) end
  call('UNLINK', s.key)
  s.gone = true
end
local function ttl(s, milliseconds) call('PEXPIREAT', s.key, text(math.ceil(now + tonumber(milliseconds)))) end

local record = { checks = { never = never }, changes = { delete = delete } }

function record.open(key) return { key = key, version = call('HGET', key, '#'), now = {} } end

function record.found(s)
  if not s.version then return {'0', '', {}} end
  return {s.version, expires(s.key), call('HGETALL', s.key)}
end

local function value(s, field)
  local found = s.now[field]
  if found == nil then return call('HGET', s.key, field) end
  return found
end

function record.checks.exists(s, wanted) return (s.version ~= false) == (wanted == '1') end
function record.checks.version(s, wanted) return (s.version or '0') == wanted end
-- 'field' is absent for '', else '=' and the value. Alternatives follow each other.
function record.checks.where(s, field, wanted, isLast)
  local found = call('HGET', s.key, field)
  s.matches = s.matches or (found and '=' .. found or '') == wanted
  if isLast ~= '1' then return true end
  local matches = s.matches
  s.matches = nil
  return matches
end
function record.checks.most(s, field, limit, amount)
  return (tonumber(call('HGET', s.key, field) or '0') or 0) + tonumber(amount) <= tonumber(limit)
end

function record.changes.know(s, version) s.known = version end
function record.changes.set(s, field, new) s.now[field] = new end
function record.changes.unset(s, field) s.now[field] = false end
function record.changes.add(s, field, amount)
  s.now[field] = text((tonumber(value(s, field) or '0') or 0) + tonumber(amount))
end
function record.changes.ttl(s, milliseconds) s.ttl = milliseconds end
record.changes['new'] = function(s, milliseconds) if not s.version then s.ttl = milliseconds end end

function record.result(s)
  if s.gone then return {'0', '', s.before} end
  local changed = false
  for field, new in pairs(s.now) do
    if new then
      if new ~= call('HGET', s.key, field) then
        call('HSET', s.key, field, new)
        changed = true
      end
    elseif call('HDEL', s.key, field) == 1 then changed = true end
  end
  if not s.version and not changed then return {'0', ''} end
  local version = s.version or text(now)
  if changed then
    if s.version then version = text(tonumber(s.version) + 1) end
    call('HSET', s.key, '#', version)
  end
  local fields = s.known and s.known ~= version and call('HGETALL', s.key) or nil
  if not s.ttl then return {version, expires(s.key), fields} end
  ttl(s, s.ttl)
  return {version, text(now + tonumber(s.ttl)), fields}
end

local set = { checks = { never = never }, changes = { delete = delete, ttl = ttl } }

function set.open(key) return { key = key, low = '-inf' } end
function set.found(s) return {tostring(call('ZCARD', s.key))} end
set.result = set.found

local function isIn(s, member)
  local found = call('ZSCORE', s.key, member)
  return found and (s.low == '-inf' or tonumber(found) >= tonumber(s.low))
end

function set.checks.below(s, low)
  s.low = score(low)
  return true
end
function set.checks.atmost(s, limit) return call('ZCOUNT', s.key, s.low, '+inf') <= tonumber(limit) end
function set.checks.has(s, member) return isIn(s, member) end
function set.checks.lacks(s, member) return not isIn(s, member) end

function set.changes.below(s) call('ZREMRANGEBYSCORE', s.key, '-inf', '(' .. s.low) end
function set.changes.remove(s, member) call('ZREM', s.key, member) end
function set.changes.touch(s, member, new) call('ZADD', s.key, 'XX', score(new), member) end
function set.changes.put(s, member, new) call('ZADD', s.key, score(new), member) end
function set.changes.keep(s, count)
  local above = call('ZCARD', s.key) - tonumber(count)
  if above > 0 then call('ZREMRANGEBYRANK', s.key, 0, above - 1) end
end

local log = { checks = { never = never }, changes = {} }

function log.open(key)
  local found = call('HMGET', key, 'l', 'b')
  return { key = key, last = tonumber(found[1] or 0), bytes = tonumber(found[2] or 0) }
end
function log.found(s) return {text(s.last)} end
log.result = log.found

-- Messages that are stored under these numbers already are a repeated step.
function log.checks.after(s, number, count)
  if s.last == tonumber(number) then return true end
  s.repeated = tonumber(number)
  return count ~= '0'
end
function log.checks.append(s, message)
  if not s.repeated then return true end
  s.repeated = s.repeated + 1
  return call('HGET', s.key, text(s.repeated)) == message
end

function log.changes.delete(s)
  delete(s)
  s.last = 0
end
function log.changes.ttl(s, milliseconds)
  ttl(s, milliseconds)
  if tonumber(milliseconds) <= 0 then s.last = 0 end
end
function log.changes.reset(s, number)
  local left = call('PTTL', s.key)
  call('UNLINK', s.key)
  s.last, s.bytes = tonumber(number), 0
  call('HSET', s.key, 'l', number, 'b', '0')
  if left >= 0 then ttl(s, left) end
end
function log.changes.append(s, message)
  if s.repeated then return end
  s.last, s.bytes = s.last + 1, s.bytes + #message
  call('HSET', s.key, text(s.last), message, 'l', text(s.last), 'b', text(s.bytes))
end
function log.changes.trim(s, messages, bytes)
  if s.repeated then return end
  local most, limit = tonumber(messages), tonumber(bytes)
  local count, before = call('HLEN', s.key) - 2, s.bytes
  while count > 1 and (count > most or s.bytes > limit) do
    local oldest = text(s.last - count + 1)
    s.bytes = s.bytes - call('HSTRLEN', s.key, oldest)
    call('HDEL', s.key, oldest)
    count = count - 1
  end
  if s.bytes ~= before then call('HSET', s.key, 'b', text(s.bytes)) end
end

local KINDS = { record = record, set = set, log = log }
local GROWS = { set = true, add = true, put = true, reset = true, append = true }
local steps, at, grows = {}, 2, false

for index, key in ipairs(KEYS) do
  local kind = KINDS[ARGV[at]]
  local s = kind.open(key)
  s.kind, s.at = kind, at + 1
  steps[index] = s
  at = at + 1
  while ARGV[at] ~= '.' do
    local operation = ARGV[at]
    grows = grows or GROWS[operation]
    local check = kind.checks[operation]
    if check and not check(s, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) then
      return {'no', text(now), tostring(index - 1), kind.found(s)}
    end
    at = at + 1 + SIZES[operation]
  end
  at = at + 1
end

-- Redis checks its memory limit at the first write of a script only, and not before a PEXPIREAT.
if grows then
  local full = redis.pcall('ZADD', KEYS[1], 'XX', '0', '\\0')
  if type(full) == 'table' and full.err and string.sub(full.err, 1, 9) ~= 'WRONGTYPE' then return redis.error_reply(full.err) end
end

local reply = {'done', text(now)}
for index, s in ipairs(steps) do
  at = s.at
  while ARGV[at] ~= '.' do
    local operation = ARGV[at]
    local change = s.kind.changes[operation]
    if change then change(s, ARGV[at + 1], ARGV[at + 2]) end
    at = at + 1 + SIZES[operation]
  end
  reply[index + 2] = s.kind.result(s)
end
return reply
`)

/**
 * KEYS: one for each query. ARGV: for each query `record`; `set`, lowest, highest, '1' if reverse, limit; or `log`, last known
 * number, maximum bytes. Returns the time, and an answer for each query.
 */
export const READ = redisScript(`${PRELUDE}
local answers = {}

function answers.record(key)
  local fields = call('HGETALL', key)
  return #fields == 0 and {} or {expires(key), fields}
end

function answers.set(key, low, high, reverse, limit)
  local from, to = score(low), score(high)
  local found
  if reverse == '1' then found = call('ZREVRANGEBYSCORE', key, to, from, 'WITHSCORES', 'LIMIT', 0, limit)
  else found = call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT', 0, limit) end
  return {tostring(call('ZCARD', key)), found}
end

function answers.log(key, after, most)
  local last = call('HGET', key, 'l')
  if not last then return {} end
  local number, limit, bytes = tonumber(after), tonumber(most), 0
  if number > tonumber(last) or number < tonumber(last) - (call('HLEN', key) - 2) then return {last} end
  local messages = {}
  while limit > 0 and number < tonumber(last) do
    number = number + 1
    local message = call('HGET', key, text(number))
    bytes = bytes + #message
    if #messages > 0 and bytes > limit then break end
    messages[#messages + 1] = message
  end
  return {last, messages}
end

local SIZES = { record = 0, set = 4, log = 2 }
local reply, at = {text(now)}, 1
for index, key in ipairs(KEYS) do
  local kind = ARGV[at]
  reply[index + 1] = answers[kind](key, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
  at = at + 1 + SIZES[kind]
end
return reply
`)
