// Tests the log under load: rate limits for client-caused lines and a stderr that is not read.
import { once } from 'node:events'
import { expect } from 'chai'
import { describeThrown } from '../../core/http/describe-thrown.ts'
import { errorText } from '../../core/http/errors.ts'
import { createLogBudget, createLogger, createLogWriter, MAX_LINES, MAX_LOG_BUFFER } from '../../core/kernel/log.ts'
import { configText, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { compiledUrl } from '../support/compiled.ts'
import { requestHead, sendRaw } from '../support/raw-http.ts'
import { modern } from '../support/rpc.ts'

after(stopAll)
after(removeFolders)

const linesOf = (stderr: string) => stderr.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))

/** Asks `times` times with a Host that is refused, and logged. */
async function askFrom(url: string, times: number) {
  for (let sent = 0; sent < times; sent += 50) {
    await Promise.all(
      Array.from({ length: 50 }, () =>
        sendRaw(url, requestHead(url, { method: 'GET', headers: { Host: 'e'.repeat(3_000) } })),
      ),
    )
  }
}

describe('Log rate limit', () => {
  it('limits lines per kind and reports the number of dropped lines', () => {
    const told: Array<[string, number]> = []
    const budget = createLogBudget((kind, lines) => told.push([kind, lines]))
    const admitted = { often: 0, seldom: 0, others: 0 }
    for (let count = 0; count < 10_000; count++) if (budget.allows('often')) admitted.often++
    if (budget.allows('seldom')) admitted.seldom++
    for (let count = 0; count < 10_000; count++) if (budget.allows(`kind ${count}`)) admitted.others++
    budget.reportDropped()
    expect(admitted).to.deep.equal({ often: MAX_LINES, seldom: 1, others: 498 + MAX_LINES })
    expect(told).to.deep.equal([
      ['often', 10_000 - MAX_LINES],
      ['lines of other kinds', 10_000 - 498 - MAX_LINES],
    ])
    expect(budget.allows('often')).to.equal(true)
  })

  it('shortens thrown errors, but not startup messages', () => {
    const faults = new Error(Array.from({ length: 500 }, (_, index) => `fault ${index}`).join('\n'))
    expect(errorText(faults)).to.equal(faults.message)
    expect(describeThrown(faults).message).to.match(/^fault 0\n.{1990,2000}…$/s)
  })

  it('logs an error cause once, shortened, for any value', () => {
    const withCause = (cause: unknown) => describeThrown(new Error('cannot be read: gone', { cause })).cause
    expect(withCause(new Error('gone'))).to.equal(undefined)
    expect(withCause('x'.repeat(5_000))).to.have.length(2_001)
    expect(withCause(Object.create(null))).to.equal('a value that cannot be written as text')
    const unreadable = Object.defineProperty(new Error('a'), 'cause', {
      get() {
        throw new Error('b')
      },
    })
    expect(describeThrown(unreadable)).to.deep.equal({ type: 'Error', message: 'a' })
  })

  it('limits and shortens log lines caused by anonymous clients, and logs the cause of an error', async () => {
    const tool = `defineTool({ name: 'fail', handler() {
      throw new Error('cannot be reached', { cause: new Error('connect ECONNREFUSED') })
    } })`
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText({ tool }) }))
    const url = await running.listening()
    await modern(url, 'tools/call', { name: 'fail' })
    await askFrom(url, 200)
    running.child.kill('SIGTERM')
    const { stderr, code } = await running.ended
    const lines = linesOf(stderr)
    const refused = lines.filter(({ msg }) => msg === 'refused a request')
    const left = lines.filter(({ msg }) => msg === 'suppressed repeated log lines')
    expect([refused.length, left.map(({ kind, lines }) => [kind, lines]), code]).to.deep.equal([
      MAX_LINES,
      [['refused a request', 200 - MAX_LINES]],
      0,
    ])
    for (const line of refused) expect(JSON.stringify(line).length).to.be.lessThan(4_000)
    const [line] = lines.filter(({ err }) => err)
    expect(line?.err).to.deep.include({ type: 'Error', message: 'cannot be reached', cause: 'connect ECONNREFUSED' })
    expect(line?.err.at).to.match(/^mcp\.config\.mjs:\d+:\d+$/)
    expect(line?.err.stack.split('\n')).to.have.length(4)
    expect(line?.err.hidden).to.match(/^\d+.*mcp-host: --log-level/)
    expect(line?.fix).to.match(/ToolError/)
  })
})

describe('Log backpressure', () => {
  it('drops and counts log lines without blocking if stderr is not read', () => {
    const written: string[] = []
    const stderr = {
      writableLength: 0,
      write(line: string) {
        written.push(line)
        stderr.writableLength += line.length
        return true
      },
      on: () => stderr,
    }
    const writer = createLogWriter(stderr as never, lines => `dropped ${lines}\n`)
    const line = `${'x'.repeat(999)}\n`
    for (let count = 0; count < 5_000; count++) writer.write(line)
    const kept = written.length
    expect(kept).to.equal(Math.floor(MAX_LOG_BUFFER / line.length))
    stderr.writableLength = 0
    writer.write('next\n')
    expect(written.slice(kept)).to.deep.equal([`dropped ${5_000 - kept}\n`, 'next\n'])
  })

  it('adds one listener to stderr for any number of hosts', () => {
    createLogger()
    const before = process.stderr.listenerCount('error')
    for (let count = 0; count < 12; count++) createLogger()
    expect(process.stderr.listenerCount('error')).to.equal(before)
  })

  it('keeps serving and shuts down on SIGTERM with an unread stderr', async () => {
    const config = configText({
      tool: `defineTool({ name: 'fail', handler() { throw new Error('x'.repeat(1_900)) } })`,
      before: `
        const { createLogger } = await import('${compiledUrl('core/kernel/log.ts')}')
        const log = createLogger()
        globalThis.flood = () => { for (let kind = 0; kind < 3_000; kind++) log.error({ x: 'x'.repeat(900) }, 'kind ' + kind % 400) }`,
      plugins: `flood: definePlugin({ options: { type: 'object', additionalProperties: false, properties: {} }, setup(host) {
        host.endpoint('/flood', { public: true, methods: { GET(ctx) { globalThis.flood(); ctx.body = 'flooded' } } })
      } })(),`,
    })
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': config }))
    const url = await running.listening()
    running.child.stderr.pause()
    let served = 0
    for (let round = 0; round < 10; round++) {
      expect((await fetch(`${url}/flood`)).status).to.equal(200)
      const { message } = await modern(url, 'tools/call', { name: 'fail' })
      if (message.result.isError) served++
    }
    running.child.kill('SIGTERM')
    const [code] = await once(running.child, 'exit')
    expect([served, code]).to.deep.equal([10, 0])
    running.child.stderr.resume()
    await running.ended
  })
})
