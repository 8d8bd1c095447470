import { expect } from 'chai'
import { formatJson, formatText } from '../../../plugins/access-log/format-line.ts'
import { recordOf } from '../../fixtures/records.ts'

describe('Access log line', () => {
  it('formats the time as ISO 8601, independent of the previous line', () => {
    const second = Date.UTC(2026, 10, 22, 23, 59, 59)
    const times = [0, 7.9, 45, 999.99, 1_000, -1, 0, 86_400_000].map(after => second + after)
    const facts = { slow: false, sample: undefined }
    const written = times.map(at => JSON.parse(formatJson(recordOf({ at }), facts)).time)
    expect(written).to.deep.equal(times.map(at => new Date(at).toISOString()))
    expect(formatText(recordOf({ at: second }), facts)).to.match(/^2026-11-22T23:59:59\.000Z {2}/)
  })

  it('has the server, its tool and the duration of a call to an upstream server', () => {
    const record = recordOf({ upstream: { name: 'files', tool: 'read', milliseconds: 1.234 } })
    const line = JSON.parse(formatJson(record, { slow: false, sample: undefined }))
    expect(line).to.include({ upstream: 'files', upstreamTool: 'read', upstreamMs: 1.23 })
  })
})
