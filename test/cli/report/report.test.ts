// Tests `mcp-host report` with logs of known content, invalid lines and time ranges.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { type Report, Tally } from '../../../cli/report/tally.ts'
import { reportText } from '../../../cli/report/text.ts'
import { reportCommand } from '../../../cli/report.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { startCli, stopAll } from '../in-process.ts'
import { printedBy, testContext } from '../run-command.ts'
import { callLine, oldLine } from './log-lines.ts'

after(removeFolders)
after(stopAll)

const ALWAYS = { since: -Infinity, until: Infinity, future: Infinity }

function reportOn(lines: ReadonlyArray<string | undefined>, most = 10): Report {
  const tally = new Tally(ALWAYS)
  for (const line of lines) tally.line(line)
  return tally.report(most, [])
}

async function reportOf(files: Readonly<Record<string, string | Buffer>>, values: object = {}): Promise<Report> {
  const folder = await makeFolder({})
  const paths = Object.entries(files).map(([name, content]) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  })
  return JSON.parse(await printedBy(context => reportCommand.run({ json: true, ...values }, paths, context)))
}

const rowOf = ({ legacy }: Report, feature: string) => legacy.features.find(row => row.feature === feature)

describe('a report on an access log', () => {
  it('counts calls, errors, other requests and outcomes, and prints the period', () => {
    const report = reportOn([
      callLine('2026-11-20T10:00:00.000Z'),
      callLine('2026-11-20T12:00:00.000Z', { outcome: 'tool_error' }),
      callLine('2026-11-20T11:00:00.000Z', { outcome: 'error', error: 'invalidParams', by: 'mcp-host' }),
      callLine('2026-11-20T11:00:00.000Z', { outcome: 'cancelled' }),
      callLine('2026-11-20T11:00:00.000Z', { outcome: 'input_required' }),
      '{"time":"2026-11-20T13:00:00.000Z","verb":"POST","status":401,"outcome":"refused","error":"unauthorized","by":"auth-jwt","ms":1,"ip":"::1"}',
    ])
    expect(report).to.include({ calls: 5, errors: 2, errorRatio: 0.4, requests: 1 })
    expect(report.outcomes).to.deep.equal({
      ok: 1,
      tool_error: 1,
      error: 1,
      cancelled: 1,
      input_required: 1,
      refused: 1,
    })
    expect([report.from, report.until]).to.deep.equal(['2026-11-20T10:00:00.000Z', '2026-11-20T13:00:00.000Z'])
  })

  it('counts requests that run nothing, such as lists, as other requests', () => {
    const of = (method: string, outcome: string) => callLine('2026-11-20T10:00:00.000Z', { method, outcome })
    const report = reportOn([
      ...['server/discover', 'tools/list', 'initialize', 'ping'].map(method => of(method, 'ok')),
      of('tools/list', 'error'),
      of('tools/call', 'tool_error'),
      of('prompts/get', 'ok'),
      of('resources/read', 'ok'),
    ])
    expect(report).to.include({ calls: 3, errors: 1, requests: 5 })
    expect(report.outcomes).to.include({ error: 1, ok: 6 })
  })

  it('lists denied users, most frequent first, if the log names them', () => {
    const refused = (user: string | undefined, error: string) =>
      callLine('2026-11-20T10:00:00.000Z', { outcome: 'refused', error, ...(user !== undefined && { user }) })
    const lines = [refused('ada', 'forbidden'), refused('bob', 'rateLimited'), refused('bob', 'rateLimited')]
    const report = reportOn([...lines, refused(undefined, 'unauthorized'), callLine('2026-11-20T10:00:00.000Z')])
    expect(report.refused).to.deep.equal([
      { user: 'bob', error: 'rateLimited', count: 2 },
      { user: 'ada', error: 'forbidden', count: 1 },
    ])
    expect(reportText(report, 80)).to.match(/^refused users\n {5}user {2}error\n {2}2 {2}bob {3}rateLimited$/m)
  })

  it('prints the most used and the slowest tools, with percentiles within 2 of 100', () => {
    const at = '2026-11-20T10:00:00.000Z'
    const fast = Array.from({ length: 1_000 }, (_, index) => callLine(at, { name: 'fast', ms: (index + 1) / 10 }))
    const slow = Array.from({ length: 100 }, (_, index) => callLine(at, { name: 'slow', ms: (index + 1) * 100 }))
    const report = reportOn([...fast, ...slow, callLine(at, { name: 'slow', outcome: 'error', error: 'internal' })])
    expect(report.busiest.map(({ tool, calls, errors }) => [tool, calls, errors])).to.deep.equal([
      ['fast', 1_000, 0],
      ['slow', 101, 1],
    ])
    expect(report.slowest.map(({ tool }) => tool)).to.deep.equal(['slow', 'fast'])
    const [quick] = report.busiest
    for (const [told, truth] of [
      [quick?.p50, 50],
      [quick?.p95, 95],
      [quick?.p99, 99],
    ] as const) {
      expect(told).to.be.within(truth * 0.98, truth * 1.02)
    }
  })

  it('prints refusals by reason, most frequent first, and the number of others', () => {
    const at = '2026-11-20T10:00:00.000Z'
    const refused = (by: string, error: string, reason?: string) =>
      callLine(at, { outcome: 'refused', method: undefined, by, error, reason })
    const limit = refused('rate-limit', 'tooManyRequests', 'per user')
    const report = reportOn([refused('auth-jwt', 'unauthorized'), limit, limit, refused('a', 'forbidden')], 2)
    expect(report.causes).to.deep.equal([
      { by: 'rate-limit', error: 'tooManyRequests', reason: 'per user', count: 2 },
      { by: 'auth-jwt', error: 'unauthorized', reason: undefined, count: 1 },
    ])
    expect(report.causesNotListed).to.equal(1)
  })

  it('prints failed calls to APIs by status', () => {
    const failed = callLine('2026-11-20T10:00:00.000Z', { outcome: 'tool_error', reason: 'HTTP 500', upstream: 'shop' })
    expect(reportOn([failed, callLine('2026-11-20T10:00:00.000Z', { outcome: 'tool_error' })]).causes).to.deep.equal([
      { by: undefined, error: 'tool_error', reason: 'HTTP 500', count: 1 },
    ])
  })

  it('counts users, clients and sessions: exactly if there are few, otherwise approximately', () => {
    const at = '2026-11-20T10:00:00.000Z'
    const report = reportOn(
      Array.from({ length: 20_000 }, (_, index) => callLine(at, { user: `u${index}`, client: `c ${index % 7}` })),
    )
    expect(report.clients).to.deep.equal({ count: 7, exact: true })
    expect(report.users?.exact).to.equal(false)
    expect(report.users?.count).to.be.within(18_000, 22_000)
    expect(report.sessions).to.deep.equal({ count: 0, exact: true })
  })

  it('skips incomplete and foreign lines, and counts them', () => {
    const good = callLine('2026-11-20T10:00:00.000Z')
    const report = reportOn([
      good,
      good.slice(0, 40),
      undefined,
      'GET / 200',
      'null',
      '[]',
      '{"level":30,"time":1795222130007,"msg":"listening"}',
      callLine('yesterday'),
      callLine('2026-99-99T10:00:00.000Z'),
      callLine('2026-11-20T10:00:00.000Z', { outcome: 'constructor' }),
    ])
    expect(report.lines).to.deep.equal({ counted: 1, outside: 0, future: 0, skipped: 9 })
  })

  it('prints forged lines without control characters, and truncated', () => {
    const evil = `\u001b[2J\u009b31m\u202e\n${'x'.repeat(500)}`
    const at = '2026-11-20T10:00:00.000Z'
    const forged = { name: evil, client: evil, by: evil, error: evil, reason: evil, route: evil, transport: evil }
    const report = reportOn([oldLine(at, evil, forged), callLine(at, { ...forged, asked: [evil, 7], method: evil })])
    const text = reportText(report, 100)
    expect(text.replaceAll('\n', '')).not.to.match(/[\p{Cc}\u202e]/u)
    expect(JSON.stringify(report)).not.to.match(/[\p{Cc}\u202e]/u)
    // Sentences are not cut; tables are.
    const tables = text.slice(0, text.indexOf('\n\n1 client'))
    expect(Math.max(...tables.split('\n').map(line => line.length))).to.be.at.most(100)
  })
})

describe('report on a sampled access log', () => {
  const at = '2026-11-01T10:00:00.000Z'
  const later = '2026-11-21T10:00:00.000Z'
  const sampled = (fields: object) => callLine(at, { sample: 0.1, user: 'u', ...fields })
  const fast = Array.from({ length: 10 }, (_, index) => sampled({ ms: index + 1 }))
  const failed = Array.from({ length: 4 }, () => callLine(later, { outcome: 'tool_error', ms: 50 }))
  const slow = Array.from({ length: 6 }, () => callLine(later, { ms: 2_000, slow: true }))

  it('multiplies sampled lines, and counts unsampled lines once', () => {
    const plain = '{"time":"2026-11-02T13:00:00.000Z","verb":"GET","status":200,"outcome":"ok","ms":1,"sample":0.25}'
    const report = reportOn([...fast, ...failed, ...slow, plain])
    expect(report).to.include({ estimated: true, calls: 110, errors: 4, requests: 4 })
    expect(report.outcomes).to.deep.equal({ ok: 110, tool_error: 4 })
    expect(report.lines?.counted).to.equal(21)
    const [say] = report.busiest
    expect(say).to.include({ tool: 'say', calls: 110, errors: 4 })
    // Of 110: 100 are fast, 10 are not.
    expect(say?.p50).to.be.within(5.8, 6.2)
    expect(say?.p95).to.be.within(1_960, 2_040)
  })

  it('prints approximate numbers, and omits unknown ones', () => {
    const report = reportOn([...fast, ...failed, ...slow])
    expect([report.users, report.clients, report.sessions]).to.deep.equal([undefined, undefined, undefined])
    const text = reportText(report, 120)
    expect(text).to.match(/about 110 calls, 4 errors \(about 3\.6 %\).*\n20 .*\n.*sampled/)
    expect(text).to.contain('\nbusiest tools (about)\n')
    expect(reportText(reportOn(failed), 120)).not.to.contain('about')
  })

  it('does not report anything as unused, because lines can be missing', () => {
    const old = oldLine(at, 'ada 1.0', { transport: 'transport-sse', sample: 0.5 })
    const report = reportOn([old, ...fast, ...slow])
    expect(rowOf(report, 'HTTP+SSE')).to.include({ verdict: 'used', calls: 2 })
    expect(rowOf(report, 'roots')).to.include({ verdict: 'unknown' })
  })

  it('applies no sampling weight to forged lines and to lines that are always written', () => {
    expect(reportOn([sampled({ outcome: 'input_required' })])).to.include({ estimated: true, calls: 10 })
    const odd = [0, -1, 1, 2, 1e-300, '0.1', null].map(sample => sampled({ sample }))
    const report = reportOn([...odd, sampled({ slow: true }), sampled({ outcome: 'error', error: 'internal' })])
    expect(report).to.include({ estimated: false, calls: 9, errors: 1 })
  })
})

describe('use of the legacy protocol', () => {
  const DAYS = ['2026-11-01T10:00:00.000Z', '2026-11-02T10:00:00.000Z', '2026-11-21T10:00:00.000Z'] as const
  const [first, second, last] = DAYS

  it('prints clients and protocol versions with their first and last use', () => {
    const report = reportOn([
      oldLine(first, 'ada 1.0', { method: 'logging/setLevel', name: undefined }),
      oldLine(second, 'ada 1.0', { asked: ['sampling/createMessage'] }),
      oldLine(last, 'bob 2.0', { transport: 'transport-sse', revision: '2024-11-05' }),
      callLine(last, { asked: ['sampling/createMessage'] }),
    ])
    expect(report.legacy.clients).to.have.length(2)
    const [ada] = report.legacy.clients
    expect(ada).to.include({ client: 'ada 1.0', revision: '2025-06-18', calls: 2, first, last: second })
    expect(ada?.features.map(({ feature }) => feature)).to.deep.equal([
      'old revision',
      'sessions',
      'logging/setLevel',
      'sampling',
    ])
    expect(rowOf(report, 'HTTP+SSE')).to.deep.include({ verdict: 'used', clients: 1, calls: 1, first: last, last })
    // In 2026-07-28 a question is part of an answer: no session is needed for it.
    expect(rowOf(report, 'sampling')).to.deep.include({ verdict: 'used', calls: 1 })
    expect(rowOf(report, 'roots')).to.include({ verdict: 'unused' })
  })

  it('does not report as unused what an audit log does not contain', () => {
    const audited = { decision: 'allowed', event: 'call', seq: 2, prev: 'a', hash: 'b' }
    const report = reportOn([
      oldLine(last, 'ada 1.0', audited),
      '{"seq":1,"prev":"0","event":"opened","hash":"a"}',
      '{"seq":3,"prev":"0","time":"2026-11-20T10:00:00.000Z","event":"gap","lost":4,"refused":0,"hash":"a"}',
      '{"seq":4,"prev":"0","time":"2026-11-20T10:00:00.000Z","event":"refusals","count":7,"until":"2026-11-20T10:00:00.000Z","hash":"a"}',
    ])
    expect(rowOf(report, 'logging/setLevel')).to.include({ verdict: 'unknown' })
    for (const feature of ['HTTP+SSE', 'sampling']) {
      expect(rowOf(report, feature), feature).to.include({ verdict: 'unused' })
    }
    expect(rowOf(report, 'sessions')).to.include({ verdict: 'used' })
    expect(report.lines).to.deep.equal({ counted: 1, outside: 0, future: 0, skipped: 0 })
    expect(report.notes.join('\n')).to.match(/^.*audit.* 4 .*\n.*audit.* 7 .*$/)
    expect(report).to.include({ calls: 1, requests: 7 })
    expect(report.outcomes).to.deep.equal({ ok: 1, refused: 7 })
  })
})

describe('mcp-host report', () => {
  const recent = (ago: number) => new Date(Date.now() - ago).toISOString()

  it('reads several files as one, also gzip, and names a truncated one', async () => {
    const line = `${callLine('2026-11-20T10:00:00.000Z')}\n`
    const packed = gzipSync(line.repeat(1_000))
    const report = await reportOf({
      'access.log': `${line}\r\n\n${line.trim()}`,
      'access.log.1.gz': gzipSync(line.repeat(3)),
      'access.log.2.gz': packed.subarray(0, packed.length - 8),
    })
    expect(report.calls).to.equal(1_005)
    expect(report.notes).to.have.length(1)
    expect(report.notes[0]).to.match(/access\.log\.2\.gz.*unexpected end of file/)
  })

  it('continues after a line of any length and any bytes', async () => {
    const line = `${callLine('2026-11-20T10:00:00.000Z')}\n`
    const noise = Buffer.from([0xff, 0x00, 0xc0, 0x0a])
    const huge = Buffer.from(`{"a":"${'x'.repeat(3_000_000)}"}\n`)
    const report = await reportOf({ log: Buffer.concat([Buffer.from(line), huge, noise, Buffer.from(line)]) })
    expect(report.lines).to.deep.equal({ counted: 2, outside: 0, future: 0, skipped: 2 })
  })

  it('--since and --until select by time, and lines of the future are omitted', async () => {
    const hour = 3_600_000
    const log = [recent(50 * hour), recent(20 * hour), recent(hour), recent(-200 * hour)].map(at => callLine(at))
    const file = { log: log.join('\n') }
    expect((await reportOf(file)).lines).to.include({ counted: 3, outside: 0, future: 1 })
    expect((await reportOf(file, { since: '24h' })).calls).to.equal(2)
    expect((await reportOf(file, { since: '3d', until: '2h' })).calls).to.equal(2)
    expect((await reportOf(file, { since: recent(10 * hour) })).calls).to.equal(1)
  })

  it('prints tables, most important rows first', async () => {
    const folder = await makeFolder({ log: `${oldLine(recent(60_000), 'ada 1.0')}\n` })
    const text = await printedBy(context => reportCommand.run({}, [join(folder, 'log')], context))
    expect(text).to.match(/^\d{4}-\d\d-\d\d \d\d:\d\d to .* UTC\n1 call, 0 errors/)
    expect(text).to.match(/\n {2}tool +route +calls +errors +p50 ms/)
    expect(text).to.match(/\n {2}ada 1\.0 +2025-06-18 +sessions +1 /)
  })

  it('reports an empty result with the reason in place of empty tables, and exits 1', async () => {
    const report = await reportOf({ log: 'no line of ours\n' })
    expect(report.lines).to.include({ counted: 0, skipped: 1 })
    expect(report.notes[0]).to.match(/log\b/)
    for (const [log, values, why] of [
      ['no line of ours\n\nnor this', {}, /: 2 lines.* format: 'json'$/],
      [callLine(recent(7_200_000)), { since: '1h' }, /: 1 .*--since.*--until/],
      [callLine(recent(-1e9)), {}, /: 1 lines/],
      ['', {}, /: \D+$/],
    ] as const) {
      const folder = await makeFolder({ log })
      const context = testContext({ cwd: folder })
      expect(await reportCommand.run(values, ['log'], context)).to.equal(1)
      expect(context.text.stdout).to.equal('')
      expect(context.text.stderr.trimEnd())
        .to.match(/^mcp-host: nothing was counted/)
        .and.to.match(why)
    }
  })

  it('names the files that are no logs of mcp-host', async () => {
    const report = await reportOf({ log: callLine(recent(1_000)), other: 'not ours\n' })
    expect(report.calls).to.equal(1)
    expect(report.notes).to.have.length(1)
    expect(report.notes[0]).to.match(/\bother\b/)
  })

  it('reads the logs of a folder, rotated files included', async () => {
    const line = (agent: string) => `${oldLine(recent(60_000), agent)}\n`
    const cwd = await makeFolder({
      'logs/access.log': line('ada 1.0'),
      'logs/access.log.1': line('bob 1.0'),
      'logs/audit.1.jsonl': line('cy 1.0'),
      'logs/audit.jsonl.lock': '{}',
      'logs/notes.txt': line('zoe 1.0'),
    })
    const text = await printedBy(context => reportCommand.run({}, [join(cwd, 'logs')], context))
    expect(text).to.contain('ada').and.contain('bob').and.contain('cy').and.not.contain('zoe')
  })

  for (const [what, values, sources, message] of [
    ['a file that is not there', {}, ['nowhere.log'], /^nowhere\.log.*ENOENT/],
    ['a folder without logs', {}, [import.meta.dirname], /contains no \*\.log or \*\.jsonl file/],
    ['no time', { since: 'yesterday' }, ['a'], /^--since.*24h.*7d/],
    ['times that are exchanged', { since: '1h', until: '2h' }, ['a'], /^--since.*--until/],
    ['no number of rows', { top: '0' }, ['a'], /^--top/],
  ] as const) {
    it(`rejects ${what}, and prints what to do`, async () => {
      const refusal = await reportCommand.run(values, sources, testContext()).then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(refusal).to.include({ exitCode: 2 })
      expect(String(Object(refusal).message)).to.match(message)
    })
  }

  it('is tested with lines that the access log writes', () => {
    const written = readFileSync(new URL('../../../plugins/access-log/format-line.ts', import.meta.url), 'utf8')
    const fields = Object.keys(
      JSON.parse(oldLine('2026-11-20T10:00:00.000Z', 'a', { error: '', by: '', reason: '', asked: [] })),
    )
    expect(fields.filter(field => !new RegExp(`^ {4}${field}[:,]`, 'm').test(written))).to.deep.equal([])
  })
})

describe('mcp-host report in a pipe', () => {
  it('reads stdin', async () => {
    const { child, ended } = startCli(['report', '-', '--json'], await makeFolder({}))
    child.stdin.end(`${callLine('2026-11-20T10:00:00.000Z')}\ntorn`)
    const { code, stdout } = await ended
    expect(JSON.parse(stdout)).to.deep.include({ calls: 1, lines: { counted: 1, outside: 0, future: 0, skipped: 1 } })
    expect(code).to.equal(0)
  })
})
