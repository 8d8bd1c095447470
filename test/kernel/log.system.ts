// The log under those who would make it the weak place: what strangers cause is counted, and nobody waits for its reader.
import { once } from 'node:events'
import { expect } from 'chai'
import { describeThrown } from '../../core/http/describe-thrown.ts'
import { errorText } from '../../core/http/errors.ts'
import { createLogger } from '../../core/kernel/log.ts'
import { createLogBudget, MAX_LINES } from '../../core/kernel/log-budget.ts'
import { createLogWriter, MAX_WAITING_LOG } from '../../core/kernel/log-writer.ts'
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

describe('the lines of one kind', () => {
  it('are as many as fit, and then a number; other kinds have theirs', () => {
    const told: Array<[string, number]> = []
    const budget = createLogBudget((kind, lines) => told.push([kind, lines]))
    const admitted = { often: 0, seldom: 0, others: 0 }
    for (let count = 0; count < 10_000; count++) if (budget.admits('often')) admitted.often++
    if (budget.admits('seldom')) admitted.seldom++
    for (let count = 0; count < 10_000; count++) if (budget.admits(`kind ${count}`)) admitted.others++
    budget.settle()
    console.log(`log lines of 20,001 of 10,002 kinds: ${admitted.often + admitted.seldom + admitted.others} written`)
    expect(admitted).to.deep.equal({ often: MAX_LINES, seldom: 1, others: 498 + MAX_LINES })
    expect(told).to.deep.equal([
      ['often', 10_000 - MAX_LINES],
      ['lines of other kinds', 10_000 - 498 - MAX_LINES],
    ])
    expect(budget.admits('often')).to.equal(true)
  })

  it('shorten what was thrown, which a start-up message does not', () => {
    const faults = new Error(Array.from({ length: 500 }, (_, index) => `fault ${index}`).join('\n'))
    expect(errorText(faults)).to.equal(faults.message)
    expect(describeThrown(faults).message).to.match(/^fault 0\n.{1990,2000}…$/s)
  })

  it('say what caused an error: what is thrown for clients says it to nobody', async () => {
    const tool = `defineTool({ name: 'fail', handler() {
      throw new Error('cannot be reached', { cause: new Error('connect ECONNREFUSED') })
    } })`
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText({ tool }) }))
    await modern(await running.listening(), 'tools/call', { name: 'fail' })
    running.child.kill('SIGTERM')
    const { stderr } = await running.ended
    const [line] = linesOf(stderr).filter(({ err }) => err)
    expect(line?.err).to.deep.include({ type: 'Error', message: 'cannot be reached', cause: 'connect ECONNREFUSED' })
    expect(line?.err.at).to.match(/^mcp\.config\.mjs:\d+:\d+$/)
    expect(line?.err.stack.split('\n')).to.have.length(4)
    expect(line?.err.hidden).to.match(/^\d+ frames of Node and mcp-host: --log-level debug shows them$/)
    expect(line?.fix).to.match(/ToolError/)
  })

  it('say a cause once, shortened, whatever it is', () => {
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

  it('that anonymous clients cause are told by their number, and are short', async () => {
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText() }))
    const url = await running.listening()
    await askFrom(url, 200)
    running.child.kill('SIGTERM')
    const { stderr, code } = await running.ended
    const lines = linesOf(stderr)
    const refused = lines.filter(({ msg }) => msg === 'refused a request')
    const left = lines.filter(({ msg }) => msg === 'left out log lines of one kind')
    console.log(
      `200 refused requests: ${refused.length} lines, ${left[0]?.lines} left out, ${stderr.length} characters`,
    )
    expect([refused.length, left.map(({ kind, lines }) => [kind, lines]), code]).to.deep.equal([
      MAX_LINES,
      [['refused a request', 200 - MAX_LINES]],
      0,
    ])
    for (const line of refused) expect(JSON.stringify(line).length).to.be.lessThan(4_000)
  })
})

describe('a log that nobody reads', () => {
  it('holds up nobody: what does not fit is dropped, counted and told', () => {
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
    expect(kept).to.equal(Math.floor(MAX_WAITING_LOG / line.length))
    stderr.writableLength = 0
    writer.write('next\n')
    console.log(`5,000 lines that nobody reads: ${kept} kept, ${5_000 - kept} dropped and told`)
    expect(written.slice(kept)).to.deep.equal([`dropped ${5_000 - kept}\n`, 'next\n'])
  })

  it('has one listener at stderr, however many hosts a process has', () => {
    createLogger()
    const before = process.stderr.listenerCount('error')
    for (let count = 0; count < 12; count++) createLogger()
    expect(process.stderr.listenerCount('error')).to.equal(before)
  })

  it('is served beside, and the process still ends when it is told to', async () => {
    const config = configText({
      tool: `defineTool({ name: 'fail', handler() { throw new Error('x'.repeat(1_900)) } })`,
      before: `
        const { createLogger } = await import('${compiledUrl('core/create-host.ts')}')
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
    console.log(`30,000 lines in a log that nobody reads: ${served} of 10 calls answered, exit ${code}`)
    expect([served, code]).to.deep.equal([10, 0])
    running.child.stderr.resume()
    await running.ended
  })
})
