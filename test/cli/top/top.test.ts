// `mcp-host top` at a terminal that the test holds, before a page whose figures it moves; and `report` on the same page.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import { expect } from 'chai'
import { askPage } from '../../../cli/metrics-page/ask-page.ts'
import { reportVerb } from '../../../cli/report.ts'
import { figuresOf } from '../../../cli/top/figures.ts'
import { bytesText, frameLines } from '../../../cli/top/frame.ts'
import { watchFigures } from '../../../cli/top/watch-figures.ts'
import { topVerb } from '../../../cli/top.ts'
import { createSecrets } from '../../../client/secrets.ts'
import { printedBy, testContext } from '../printed-by.ts'
import { createFigures, type FakePage, startFakePage } from './fake-metrics.ts'

let page: FakePage
beforeEach(async () => {
  page = await startFakePage()
})
afterEach(() => page.close())

const ENTER = '\x1b[?1049h'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'

class Output extends Writable {
  readonly isTTY = true
  columns = 100
  rows = 30
  text = ''
  override _write(chunk: Buffer, _encoding: string, done: () => void) {
    this.text += String(chunk)
    done()
    this.emit('drawn')
  }
  /** What is on the screen. */
  get frame(): string {
    const picture = this.text.slice(this.text.lastIndexOf('\x1b[H') + 3)
    return ['\x1b[K', '\x1b[J', '\r'].reduce((text, control) => text.replaceAll(control, ''), picture)
  }
}

class Input extends PassThrough {
  readonly isTTY = true
  readonly modes: boolean[] = []
  setRawMode(mode: boolean) {
    this.modes.push(mode)
  }
}

/** At a terminal, with the page asked each 5 ms. */
function watch(url = page.url, token?: string, interval = 5) {
  const [input, output, over] = [new Input(), new Output(), new AbortController()]
  const ended = watchFigures({
    url,
    interval,
    ask: signal => askPage({ url, token }, signal),
    input,
    output,
    secrets: createSecrets(),
    signal: over.signal,
  })
  ended.catch(() => undefined)
  /** Resolves with the first frame that has these words. */
  async function shows(words: RegExp): Promise<string> {
    while (!words.test(output.frame)) {
      await Promise.race([
        new Promise(resolve => output.once('drawn', resolve)),
        ended.then(() => {
          throw new Error(`ended without ${words}: ${output.frame}`)
        }),
      ])
    }
    return output.frame
  }
  async function quit() {
    input.write('q')
    await ended
  }
  return { input, output, over, ended, shows, quit }
}

function fill({ figures }: FakePage) {
  figures.call('say', 0.05, 60)
  figures.call('think', 5, 20)
  figures.call('think', 5, 20, 'tool_error')
  figures.refusals.inc({ route: '/mcp', error_type: 'unauthorized', refused_by: 'auth-jwt' }, 7)
  figures.plain.inc({ route: '/mcp', verb: 'POST', status: '401', outcome: 'refused' }, 7)
  figures.sessions.set({ route: '/mcp', protocol_version: '2025-06-18', transport: 'transport-streamable' }, 3)
  figures.sessions.set({ route: '/', protocol_version: '2025-06-18', transport: 'transport-sse' }, 1)
  figures.inFlight.set(2)
  figures.streams.set(4)
  figures.waiting.set(1_500_000)
  figures.memory.set(123_000_000)
  figures.lag.set(0.012)
  figures.redisUp.set({ redis: 'session-store-redis' }, 0)
  figures.started.set(Date.now() / 1_000 - 100)
}

describe('mcp-host top', () => {
  it('shows what is there now, the busiest tools, and refusals by cause', async () => {
    fill(page)
    // One look alone.
    const { shows, quit } = watch(page.url, undefined, 3_600_000)
    const frame = await shows(/think/)
    expect(frame).to.match(/^http:\/\/127\.0\.0\.1:\d+\/metrics.* \d+ s/)
    expect(frame).to.match(/\ncalls +-\/s, errors -\/s, p50 \d+ ms, p99 \d+ ms/)
    expect(frame).to.match(/2 in flight, 4 streams, 1\.5 MB/)
    expect(frame).to.contain('sessions 4 (2025-06-18: 4)\n')
    expect(frame).to.match(/123 MB.*12 ms/)
    expect(frame).to.contain('session-store-redis AWAY\n')
    expect(frame).to.match(/\nsay +\/mcp +- +- +1 % /)
    expect(frame).to.match(/\nunauthorized +auth-jwt +\S+ +7\n/)
    expect(frame).to.match(/q quits.*p pauses/)
    await quit()
  })

  it('shows an upper bound for percentiles in the first bucket', async () => {
    page.figures.call('fast', 0.0001, 10)
    page.figures.call('slow', 0.05, 1)
    const { shows, quit } = watch(page.url, undefined, 3_600_000)
    const frame = await shows(/fast/)
    expect(frame).to.match(/p50 < 10 ms, p99 \d+ ms/)
    expect(frame).to.match(/\nfast .* < 10 +< 10 *\n/)
    await quit()
  })

  it('tells rates of what came since, and none below zero when the host begins anew', async () => {
    fill(page)
    const { shows, quit } = watch()
    await shows(/calls +0\.00\/s, .* of the last 1 s/)
    page.figures.call('say', 0.05, 10)
    await shows(/calls +[1-9].* of the last/)
    page.figures = createFigures()
    page.figures.call('fresh', 0.05, 3)
    page.figures.started.set(Date.now() / 1_000)
    const frame = await shows(/the host began anew at/)
    expect(frame).to.contain('fresh').and.not.to.contain('-0').and.not.to.match(/ -\d/)
    await quit()
  })

  it('says that the host is away, goes on asking, and shows it again', async () => {
    fill(page)
    const { shows, quit } = watch()
    await shows(/think/)
    page.answer = { status: 503 }
    const away = await shows(/AWAY since \d\d:\d\d:\d\d: http:\S+: it answers 503; asking again/)
    expect(away).to.contain('think')
    page.answer = { status: 200 }
    await shows(/^(?![\s\S]*AWAY since)[\s\S]*think/)
    await quit()
  })

  it('waits for a host that is not there yet', async () => {
    const { url } = page
    await page.close()
    const { shows, quit } = watch(url)
    await shows(/AWAY since .*ECONNREFUSED/)
    await quit()
  })

  it('p stops the asking and goes on, s sorts by time, a resize draws anew', async () => {
    fill(page)
    const { input, output, shows, quit } = watch()
    expect(await shows(/think/)).to.match(/say[\s\S]*think/)
    input.write('s')
    await shows(/sorts by calls$/)
    expect(output.frame).to.match(/think[\s\S]*say/)
    input.write('p')
    await shows(/PAUSED/)
    output.columns = 30
    output.rows = 6
    output.emit('resize')
    const lines = output.frame.split('\n')
    expect(lines).to.have.length(6)
    expect(Math.max(...lines.map(line => line.length))).to.be.at.most(30)
    input.write('p')
    await shows(/^(?![\s\S]*PAUSED)/)
    await quit()
  })

  it('gives the terminal back, whoever ends it', async () => {
    const endings = [
      ({ quit }: ReturnType<typeof watch>) => quit(),
      ({ input }: ReturnType<typeof watch>) => void input.write('\x03'),
      ({ over }: ReturnType<typeof watch>) => over.abort(),
      ({ output }: ReturnType<typeof watch>) => void output.emit('error', new Error('EPIPE')),
    ]
    for (const end of endings) {
      const before = process.listenerCount('exit')
      const running = watch()
      await running.shows(/metrics/)
      expect(running.input.modes).to.deep.equal([true])
      await end(running)
      await running.ended
      expect(running.output.text.startsWith(ENTER)).to.equal(true)
      expect(running.output.text.endsWith(LEAVE)).to.equal(true)
      expect(running.input.modes).to.deep.equal([true, false])
      expect(process.listenerCount('exit')).to.equal(before)
    }
  })

  it('gives it back, too, where the address is of no metrics page, and says where they are', async () => {
    fill(page)
    const { ended, output } = watch(`${page.origin}/mcp`)
    const refusal = await ended.catch((error: unknown) => error)
    expect(output.text.endsWith(LEAVE)).to.equal(true)
    expect(String(refusal)).to.match(/405.*MCP.*\S+\/metrics$/)
    expect(refusal).to.include({ exitCode: 2 })
  })

  it('keeps what a page says from the terminal', async () => {
    const evil = '\u001b[2J\u009b31m\u202e\r\n'
    page.figures.call(evil, 1)
    page.figures.refusals.inc({ route: evil, error_type: evil, refused_by: evil })
    page.figures.redisUp.set({ redis: evil }, 1)
    page.figures.sessions.set({ route: evil, protocol_version: evil, transport: evil }, 1)
    const { shows, quit } = watch()
    const frame = await shows(/u001b/)
    expect(frame.replaceAll('\n', '')).not.to.match(/[\p{Cc}\u202e]/u)
    await quit()
  })

  it('prints the figures once where there is no terminal', async () => {
    fill(page)
    // A worker that a reload began; what was counted is of those before it, too.
    page.figures.started.set(Date.now() / 1_000 - 1)
    const text = await printedBy(context =>
      topVerb.run({ once: true, interval: '1', token: 'sesame' }, [page.url], context),
    )
    expect(text)
      .to.match(/\ncalls +0\.00\/s, errors 0\.00\/s, p50 - ms, p99 - ms/)
      .and.not.to.contain('\x1b')
    expect(text).to.match(/\nsay +\/mcp +0\.00 +0\.00 /)
    expect(text).not.to.contain('q quits')
    expect(page.authorizations).to.deep.equal(['Bearer sesame', 'Bearer sesame'])
  })

  it('says where the metrics are before it asks for a token, which the other address may not want', async () => {
    fill(page)
    const closed = createServer((_, res) => res.writeHead(401, { 'WWW-Authenticate': challenge }).end())
    let challenge = 'Bearer'
    await new Promise<void>(resolve => closed.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`
    const refusal = async () =>
      String(await topVerb.run({ once: true }, [`${origin}/mcp`], testContext()).catch(error => error))
    expect(await refusal()).to.match(/\/mcp.*401.*--token @file$/)
    challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource"`
    expect(await refusal()).to.match(/401.*MCP/)
    closed.close()
    page.mcp = { status: 401 }
    const found = String(await topVerb.run({ once: true }, [`${page.origin}/mcp`], testContext()).catch(error => error))
    expect(found).to.match(/\/mcp.*401.*http:\S+\/metrics$/)
  })

  for (const [what, answer, message] of [
    ['a page that wants a token', { status: 401 }, /it answers 401: give --token @file$/],
    ['a redirect', { status: 302 }, /it answers 302, and redirects are not followed/],
    [
      'a page of something else',
      { status: 200, text: '<html><body>\n hello </body>' },
      /it answers 200 with text\/plain, and that is no metrics page; metrics are /,
    ],
    ['an empty page', { status: 200, text: '' }, /it answers 200/],
    ['a page without an end', { status: 200, text: 'x'.repeat(33 * 1024 * 1024) }, /more than 32 MB/],
    ['a host that drains', { status: 503 }, /it answers 503$/],
  ] as const) {
    it(`says what it found of ${what}`, async () => {
      page.answer = answer
      const refusal = await topVerb.run({ once: true }, [page.url], testContext()).catch((error: unknown) => error)
      expect(String(Object(refusal).message)).to.match(message)
    })
  }

  it('does not show the password of a URL', async () => {
    const refusal = await topVerb
      .run({ once: true }, ['http://ada:sesame@127.0.0.1:1/'], testContext())
      .catch((error: unknown) => error)
    expect(String(refusal))
      .to.match(/has a user or a password in it/)
      .and.not.to.contain('sesame')
  })

  it('shows what is missing from a page as missing', () => {
    const now = { at: 1_000, page: { samples: new Map(), skipped: 0 } }
    const picture = { url: 'http://a/', figures: figuresOf(undefined, now), status: [], order: 'rate' } as const
    const lines = frameLines(picture, { columns: 80, rows: 24 })
    expect(lines.join('\n')).to.match(/^now +- .*- .*-.*\n[\s\S]*^process +- .*- ms$/m)
    expect([bytesText(999), bytesText(1_000), bytesText(12_345)]).to.deep.equal(['999 B', '1.0 kB', '12 kB'])
  })
})

describe('mcp-host report on a metrics page', () => {
  it('takes no time that there is not', async () => {
    for (const started of [1e30, Infinity, -1]) {
      page.figures.started.set(started)
      const report = JSON.parse(await printedBy(context => reportVerb.run({ json: true }, [page.url], context)))
      expect(report).to.not.have.property('from')
    }
  })

  it('tells what its sums tell, and who still uses the old protocol', async () => {
    fill(page)
    const { clients, questions } = page.figures
    clients.inc({ client: 'ada', version: '1.0', protocol_version: '2025-06-18', transport: 'transport-streamable' }, 5)
    clients.inc({ client: 'bob', version: '2.0', protocol_version: '2024-11-05', transport: 'transport-sse' }, 2)
    clients.inc({ client: 'new', version: '1.0', protocol_version: '2026-07-28', transport: '' }, 93)
    questions.inc({ client: 'ada', version: '1.0', protocol_version: '2025-06-18', kind: 'sampling' }, 1)
    questions.inc({ client: 'ada', version: '1.0', protocol_version: '2026-07-28', kind: 'elicitation' }, 1)
    questions.inc({ client: 'new', version: '1.0', protocol_version: '2026-07-28', kind: 'roots' }, 1)
    const report = JSON.parse(await printedBy(context => reportVerb.run({ json: true }, [page.url], context)))
    expect(report).to.include({ source: 'metrics', calls: 100, errors: 20, errorRatio: 0.2, requests: 7 })
    expect(report.outcomes).to.deep.equal({ ok: 80, tool_error: 20, refused: 7 })
    expect(report.busiest[0]).to.include({ tool: 'say', calls: 60, errors: 0 })
    expect(report.slowest[0]).to.include({ tool: 'think', calls: 40, errors: 20 })
    expect(report.slowest[0].p95).to.be.within(1_000, 10_000)
    expect(report.causes).to.deep.equal([{ by: 'auth-jwt', error: 'unauthorized', count: 7 }])
    expect(report.legacy.clients.map((row: { client: string }) => row.client)).to.deep.equal(['ada 1.0', 'bob 2.0'])
    const verdicts = report.legacy.features.map((row: { feature: string; verdict: string }) => [
      row.feature,
      row.verdict,
    ])
    expect(Object.fromEntries(verdicts)).to.include({
      sessions: 'used',
      'HTTP+SSE': 'used',
      batches: 'untold',
      sampling: 'used',
      elicitation: 'unused',
      roots: 'unused',
      DCR: 'untold',
    })
    expect(report.legacy.advice).to.include('1 client still uses HTTP+SSE: bob 2.0.')
  })
})
