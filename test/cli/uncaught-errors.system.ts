// Tests uncaught errors of tools, of any type.
import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { modern } from '../support/rpc.ts'
import { cliCommand, configText, type Running, startCli, startProgram, stopAll } from './run-cli.ts'

after(stopAll)
after(removeFolders)

/** Values that end a process whose log looks at them. */
const ODD = `[
  Object.create(null),
  undefined,
  null,
  7n,
  Symbol('odd'),
  { toString() { throw new Error('toString') } },
  Object.defineProperty(new Error('x'), 'message', { get() { throw new Error('message') } }),
  Object.defineProperty(new Error('x'), 'name', { get() { throw new Error('name') } }),
  Object.defineProperty(new Error('x'), 'stack', { get() { throw new Error('stack') } }),
  new Proxy({}, { get() { throw new Error('get') }, has() { throw new Error('has') }, getPrototypeOf() { throw new Error('proto') } }),
  new Proxy(new Error('x'), { get() { throw new Error('get') }, getPrototypeOf() { throw new Error('proto') } }),
  Object.assign(new Error('x'), { message: { toString: 1 } }),
]`

const LEAVE = `defineTool({
  name: 'leave',
  input: { type: 'object', properties: { how: { type: 'string' } } },
  async handler({ how }) {
    const odd = ${ODD}
    if (how === 'reject') for (const value of odd) Promise.reject(value)
    if (how.startsWith('throw ')) throw odd[Number(how.slice(6))]
    if (how === 'timer') setTimeout(() => { throw new TypeError('left in a timer') })
    if (how === 'wait') {
      console.log('waiting')
      await new Promise(resolve => process.stdin.once('data', resolve))
    }
    return String(odd.length)
  },
})`

async function serve(): Promise<{ running: Running; url: string }> {
  const folder = await makeFolder({
    'mcp.config.mjs': configText({
      tool: LEAVE,
      http: "{ port: 0, keepAliveTimeout: '100ms' }",
      routes: "{ '/': { toolsets: ['second'], stateless: true } }",
    }),
  })
  const running = startCli(['start'], folder)
  return { running, url: await running.listening() }
}

const leave = (url: string, how: string) => modern(url, 'tools/call', { name: 'leave', arguments: { how } })

const linesOf = (stderr: string) => stderr.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))

describe('Error that a tool leaves uncaught', () => {
  let running: Running
  let url: string
  before(async () => {
    ;({ running, url } = await serve())
  })

  it('is a line in the log and ends nothing if it is thrown or rejected, for any type of value', async () => {
    const odd = Number((await leave(url, 'none')).message.result.content[0].text)
    expect((await leave(url, 'reject')).status).to.equal(200)
    for (let index = 0; index < odd; index++) {
      const { status, message } = await leave(url, `throw ${index}`)
      expect([status, message.result?.isError], String(index)).to.deep.equal([200, true])
    }
    expect((await leave(url, 'none')).message.result.content[0].text).to.equal(String(odd))
    const rejected = new RegExp(`(?:"code":"MH3105"[^]*){${odd}}`)
    const failed = new RegExp(`(?:"msg":"a handler failed"[^]*){${odd}}`)
    await Promise.all([running.logged(rejected), running.logged(failed)])
  })

  it('is logged with its location if a timer throws it; running calls complete, then the process exits with 1', async () => {
    const waiting = leave(url, 'wait')
    await running.printed(/^waiting$/m)
    await leave(url, 'timer')
    await running.printed(/^crash: draining/m)
    running.child.stdin.write('go\n')
    expect((await waiting).message.result.content[0].text).to.match(/^\d+$/)
    const { code, stdout, stderr } = await running.ended
    const [line, ...more] = linesOf(stderr).filter(({ level }) => level === 60)
    expect(line.err).to.deep.include({ type: 'TypeError', message: 'left in a timer' })
    expect(line.err.at).to.match(/^mcp\.config\.mjs:\d+:\d+$/)
    expect(stdout).to.match(/stopped; running requests: 1 finished, 0 cancelled\n$/)
    expect([more, code]).to.deep.equal([[], 1])
  })
})

describe('stdout that cannot be written', () => {
  for (const args of [['start'], ['start', '--workers', '1'], ['dev']]) {
    it(`does not end the command, and is reported on stderr: ${args.join(' ')}`, async function () {
      needsProgram(this, '/dev/full', 'Linux has it', () => existsSync('/dev/full'))
      const port = await freePort()
      const config = configText({
        http: `{ port: ${port} }`,
        tool: "defineTool({ name: 'print', handler: () => { console.log('a'); console.log('b'); return 'printed' } })",
      })
      const folder = await makeFolder({ 'mcp.config.mjs': config })
      const full = ['sh', '-c', 'exec "$@" > /dev/full', 'sh', ...cliCommand(args)]
      const running = startProgram(full, folder, {})
      await running.logged(/"problem":"ENOSPC[^"]*","msg":"Cannot write to stdout/)
      const { message } = await modern(`http://127.0.0.1:${port}`, 'tools/call', { name: 'print' })
      expect(message.result.content[0].text).to.equal('printed')
      running.child.kill('SIGTERM')
      const { code, stderr } = await running.ended
      expect(code).to.equal(0)
      expect(stderr.match(/ENOSPC/g)?.length).to.be.at.most(args.includes('--workers') ? 2 : 1)
      expect(stderr).not.to.contain('MH3106')
    })
  }
})
