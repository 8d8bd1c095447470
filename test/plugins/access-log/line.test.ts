import { expect } from 'chai'
import type { CallRecord } from '../../../core/index.ts'
import { jsonLine, textLine } from '../../../plugins/access-log/line.ts'

const record = (at: number): CallRecord => ({
  call: undefined,
  outcome: 'ok',
  error: undefined,
  refusedBy: undefined,
  at,
  milliseconds: 1,
  route: '/',
  method: 'ping',
  item: undefined,
  revision: undefined,
  transport: undefined,
  asked: [],
  ip: '127.0.0.1',
  http: undefined,
  client: undefined,
  user: undefined,
  oauthClient: undefined,
  session: undefined,
  requestId: undefined,
  traceId: undefined,
  bytesIn: undefined,
  bytesOut: undefined,
})

describe('a line of the access log', () => {
  it('has the time as ISO 8601 writes it, whatever the line before it had', () => {
    const second = Date.UTC(2026, 10, 22, 23, 59, 59)
    const times = [0, 7.9, 45, 999.99, 1_000, -1, 0, 86_400_000].map(after => second + after)
    const facts = { slow: false, sample: undefined }
    const written = times.map(at => JSON.parse(jsonLine(record(at), facts)).time)
    expect(written).to.deep.equal(times.map(at => new Date(at).toISOString()))
    expect(textLine(record(second), facts)).to.match(/^2026-11-22T23:59:59\.000Z {2}/)
  })
})
