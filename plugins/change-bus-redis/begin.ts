// How a bus begins at Redis. For bus.ts and outbox.ts, whose scripts start with it.

/** KEYS[2]: the count of changes. It begins with the time: numbers of a bus that Redis forgot are never gone on with. */
export const BEGIN = `
if redis.call('EXISTS', KEYS[2]) == 0 then
  local time = redis.call('TIME')
  redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
end
`
