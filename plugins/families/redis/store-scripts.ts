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

/** Values that Lua passes to a command at once; even. */
const UNPACKED = 4_000

const PRELUDE = `
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Exact for integers up to 2^53 and for scores.
local function text(number) return string.format('%.17g', number) end

-- A score: a number, or milliseconds from now.
local function score(given) return text(type(given) == 'table' and now + given.now or given) end

local function expires(key)
  local left = call('PTTL', key)
  return left < 0 and '' or text(now + left)
end
`

/**
 * KEYS: one for each step. ARGV: deadline, and the steps as JSON. Returns `late`; `no`, time, index, found; or `done`, time, and the
 * result of each step. Without functions and with few commands, because each request of a session runs it twice.
 */
export const TRANSACT = redisScript(`${PRELUDE}
if now > tonumber(ARGV[1]) then return {'late'} end

local steps, states = cjson.decode(ARGV[2]), {}

for index = 1, #steps do
  local step, key = steps[index], KEYS[index]
  local holds, state = true, {}
  states[index] = state
  if step.record then
    local names = {'#'}
    if step.where then for field in pairs(step.where) do names[#names + 1] = '.' .. field end end
    if step.most then for field in pairs(step.most) do names[#names + 1] = '.' .. field end end
    if step.set then for field in pairs(step.set) do names[#names + 1] = '.' .. field end end
    if step.add then for field in pairs(step.add) do names[#names + 1] = '.' .. field end end
    local values = {}
    for from = 1, #names, ${UNPACKED} do
      local list = call('HMGET', key, unpack(names, from, math.min(from + ${UNPACKED - 1}, #names)))
      for at = 1, #list do values[names[from + at - 1]] = list[at] end
    end
    local version = values['#'] and tonumber(values['#'])
    state.values, state.version = values, version
    if step.exists ~= nil and step.exists ~= (version and true or false) then holds = false end
    if step.version and step.version ~= (version or 0) then holds = false end
    for field, allowed in pairs(step.where or {}) do
      local value, matches = values['.' .. field] or cjson.null, false
      if type(allowed) == 'table' then
        for _, one in ipairs(allowed) do matches = matches or one == value end
      else matches = allowed == value end
      holds = holds and matches
    end
    for field, limit in pairs(step.most or {}) do
      local amount = step.add and step.add[field] or 0
      if (tonumber(values['.' .. field] or '0') or 0) + amount > limit then holds = false end
    end
    if not holds then
      local found = version and {text(version), expires(key), call('HGETALL', key)} or {'0', '', {}}
      return {'no', text(now), tostring(index - 1), found}
    end
  elseif step.sortedSet then
    local low = step.below and score(step.below) or '-inf'
    state.low = low
    if step.most then holds = call('ZCOUNT', key, low, '+inf') <= step.most end
    for wanted, members in pairs({[true] = step.has or {}, [false] = step.lacks or {}}) do
      for _, member in ipairs(members) do
        local found = call('ZSCORE', key, member)
        local isIn = found and (low == '-inf' or tonumber(found) >= tonumber(low)) or false
        holds = holds and isIn == wanted
      end
    end
    if not holds then return {'no', text(now), tostring(index - 1), {tostring(call('ZCARD', key))}} end
  else
    local found = call('HMGET', key, 'l', 'b')
    local last, append = tonumber(found[1] or 0), step.append or {}
    state.last, state.bytes = last, tonumber(found[2] or 0)
    if step.after and not step.reset and step.after ~= last then
      -- Messages that are stored under these numbers already are a repeated step.
      state.repeated, holds = true, #append > 0
      for at, message in ipairs(append) do
        holds = holds and call('HGET', key, text(step.after + at)) == message
      end
    end
    if not holds then return {'no', text(now), tostring(index - 1), {text(last)}} end
  end
end

local reply, ttls = {'done', text(now)}, {}

for index = 1, #steps do
  local step, key, state = steps[index], KEYS[index], states[index]
  local result
  if step.record and step.delete then
    result = {'0', '', step.know and state.version and call('HGETALL', key) or nil}
    if state.version then call('UNLINK', key) end
  elseif step.record then
    local version, values, final = state.version, state.values, {}
    if step.set then for field, new in pairs(step.set) do final['.' .. field] = new end end
    for _, field in ipairs(step.unset or {}) do final['.' .. field] = false end
    for field, amount in pairs(step.add or {}) do
      local name = '.' .. field
      local value = final[name]
      if value == nil then value = values[name] end
      final[name] = text((tonumber(value or '0') or 0) + amount)
    end
    local writes, gone = {}, {}
    for name, new in pairs(final) do
      if not new then gone[#gone + 1] = name
      elseif new ~= values[name] then
        writes[#writes + 1] = name
        writes[#writes + 1] = new
      end
    end
    local changed = #writes > 0
    for from = 1, #gone, ${UNPACKED} do
      if call('HDEL', key, unpack(gone, from, math.min(from + ${UNPACKED - 1}, #gone))) > 0 then changed = true end
    end
    if changed then
      version = version and version + 1 or now
      writes[#writes + 1] = '#'
      writes[#writes + 1] = text(version)
      for from = 1, #writes, ${UNPACKED} do
        call('HSET', key, unpack(writes, from, math.min(from + ${UNPACKED - 1}, #writes)))
      end
    end
    if version then
      local ttl, at = step.ttl, ''
      if type(ttl) == 'table' then ttl = not state.version and ttl.new or nil end
      if ttl then
        at = text(now + ttl)
        ttls[#ttls + 1] = {key, ttl}
      elseif state.version then at = expires(key) end
      result = {text(version), at, step.know and step.know ~= version and call('HGETALL', key) or nil}
    else result = {'0', ''} end
  elseif step.sortedSet then
    if step.delete then call('UNLINK', key)
    else
      if step.below then call('ZREMRANGEBYSCORE', key, '-inf', '(' .. state.low) end
      for _, member in ipairs(step.remove or {}) do call('ZREM', key, member) end
      for member, new in pairs(step.touch or {}) do call('ZADD', key, 'XX', score(new), member) end
      for member, new in pairs(step.put or {}) do call('ZADD', key, score(new), member) end
      local above = step.keep and call('ZCARD', key) - step.keep or 0
      if above > 0 then call('ZREMRANGEBYRANK', key, 0, above - 1) end
      if step.ttl then ttls[#ttls + 1] = {key, step.ttl} end
    end
    result = {step.ttl and step.ttl <= 0 and '0' or tostring(call('ZCARD', key))}
  else
    local last, bytes = state.last, state.bytes
    if step.delete then
      call('UNLINK', key)
      last = 0
    else
      local ttl = step.ttl
      if step.reset then
        if not ttl then
          local left = call('PTTL', key)
          ttl = left >= 0 and left or nil
        end
        call('UNLINK', key)
        last, bytes = step.reset, 0
        if not step.append or #step.append == 0 then call('HSET', key, 'l', text(last), 'b', '0') end
      end
      if not state.repeated then
        for _, message in ipairs(step.append or {}) do
          last, bytes = last + 1, bytes + #message
          call('HSET', key, text(last), message, 'l', text(last), 'b', text(bytes))
        end
        if step.keep and step.append and #step.append > 0 then
          local count, before = call('HLEN', key) - 2, bytes
          while count > 1 and (count > step.keep.messages or bytes > step.keep.bytes) do
            local oldest = text(last - count + 1)
            bytes = bytes - call('HSTRLEN', key, oldest)
            call('HDEL', key, oldest)
            count = count - 1
          end
          if bytes ~= before then call('HSET', key, 'b', text(bytes)) end
        end
      end
      if ttl then
        ttls[#ttls + 1] = {key, ttl}
        if ttl <= 0 then last = 0 end
      end
    end
    result = {text(last)}
  end
  reply[index + 2] = result
end

-- Last, because Redis checks its memory limit at the first write of a script only, and not before a PEXPIREAT.
for _, one in ipairs(ttls) do call('PEXPIREAT', one[1], text(math.ceil(now + one[2]))) end
return reply
`)

/** KEYS: one for each query. ARGV: the queries as JSON. Returns the time, and a result for each query. */
export const READ = redisScript(`${PRELUDE}
local reply = {text(now)}
for index, query in ipairs(cjson.decode(ARGV[1])) do
  local key, answer = KEYS[index], {}
  if query.record then
    local fields = call('HGETALL', key)
    if #fields > 0 then answer = {expires(key), fields} end
  elseif query.sortedSet then
    local from, to = query.from and score(query.from) or '-inf', query.to and score(query.to) or '+inf'
    local found
    if query.reverse then found = call('ZREVRANGEBYSCORE', key, to, from, 'WITHSCORES', 'LIMIT', 0, query.limit)
    else found = call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT', 0, query.limit) end
    answer = {tostring(call('ZCARD', key)), found}
  else
    local last = call('HGET', key, 'l')
    if last then
      local number, limit, bytes = query.after, query.bytes or math.huge, 0
      if number > tonumber(last) or number < tonumber(last) - (call('HLEN', key) - 2) then answer = {last}
      else
        local messages = {}
        while limit > 0 and number < tonumber(last) do
          number = number + 1
          local message = call('HGET', key, text(number))
          bytes = bytes + #message
          if #messages > 0 and bytes > limit then break end
          messages[#messages + 1] = message
        end
        answer = {last, messages}
      end
    end
  end
  reply[index + 1] = answer
end
return reply
`)
