// Tests connections to programs: handshakes, limits, environment, and that no process is left.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { type CommandTarget, type Connection, type ConnectOptions, connect, RemoteError } from '../../remote/index.ts'
import { compiledFile } from '../support/compiled.ts'
import { eventually } from '../support/eventually.ts'

const SCRIPT = join(import.meta.dirname, 'support/stdio-server.mjs')
const client = { name: 'test', version: '1' }
let count = 0
/** In the arguments of all processes of one test. */
const newMark = () => `stdio-test-${process.pid}-${++count}`
const opened: Connection[] = []

async function open(
  kind: string,
  more: Partial<CommandTarget> = {},
  options: Partial<ConnectOptions> = {},
  mark = newMark(),
): Promise<Connection> {
  const target = { command: process.execPath, args: [SCRIPT, kind, mark], stopGrace: 100, ...more }
  const connection = await connect(target, { client, ...options })
  opened.push(connection)
  return connection
}

async function errorOf(work: Promise<unknown>): Promise<RemoteError> {
  try {
    await work
  } catch (error) {
    if (error instanceof RemoteError) return error
    throw error
  }
  throw new Error('it did not fail')
}

const textOf = (result: Record<string, unknown>): unknown => (result['content'] as { text?: string }[])[0]?.text
const callOf = async (connection: Connection, name: string, args = {}) =>
  textOf(await connection.request('tools/call', { name, arguments: args }))

/** The processes with this mark in their arguments. */
const processesOf = (mark: string): string[] =>
  execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(mark))

describe('A connection over stdio', () => {
  after(() => Promise.all(opened.map(connection => connection.close())))

  for (const era of ['legacy', 'modern'] as const) {
    it(`calls a ${era} server`, async () => {
      const connection = await open(era)
      expect(connection).to.include({ era })
      expect(await callOf(connection, 'add', { a: 1, b: 2 })).to.equal('3')
    })
  }

  it('passes few variables, those that are named, and the folder', async () => {
    process.env['STDIO_TEST_SECRET'] = 'x'
    process.env['STDIO_TEST_NAMED'] = 'y'
    const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'stdio-')))
    const connection = await open('legacy', { passEnv: ['STDIO_TEST_NAMED'], env: { OWN: 'z' }, cwd })
    const env = JSON.parse(String(await callOf(connection, 'env')))
    expect(env).to.include({ STDIO_TEST_NAMED: 'y', OWN: 'z', PATH: process.env['PATH'] })
    expect(env).not.to.have.property('STDIO_TEST_SECRET')
    expect(await callOf(connection, 'cwd')).to.equal(cwd)
  })

  it('answers requests of the server for the only call that can have caused them', async () => {
    const owners: unknown[] = []
    const onRequest: ConnectOptions['onRequest'] = async ({ owner }) => {
      owners.push(owner)
      return { roots: [] }
    }
    const connection = await open('legacy', {}, { capabilities: { roots: {} }, onRequest })
    await connection.request('tools/call', { name: 'roots' }, { owner: 'me' })
    expect(owners).to.deep.equal(['me'])
  })

  it('skips lines that are no JSON, and logs a limited part of stderr', async () => {
    const lines: string[] = []
    const connection = await open('noisy', {}, { onOutput: line => void lines.push(line) })
    expect(await callOf(connection, 'x')).to.equal('ok')
    expect(lines.join()).to.contain('(stdout) starting up')
    expect(lines.join('\n').split('\n')).to.have.length(100)
    // The lines of one write are logged together.
    expect(lines.length).to.be.lessThan(100)
    // Log fields are truncated at 1,000 characters.
    for (const line of lines) expect(line).to.have.length.below(1_000)
  })

  it('names what a program printed that is no MCP server', async () => {
    const error = await errorOf(open('noServer'))
    expect(error.reason).to.equal('invalid')
    expect(error.message).to.contain('must log to stderr').and.not.contain('Usage')
    expect(error.output).to.contain('Usage: something 1')
  })

  it('ends a program without a handshake, and tells its stderr', async () => {
    const mark = newMark()
    const error = await errorOf(open('silent', {}, { connectTimeout: 6_000 }, mark))
    expect(error).to.include({ reason: 'timeout' })
    expect(error.message).to.not.contain('database')
    expect(error.output).to.contain('waiting for a database')
    expect(processesOf(mark)).to.deep.equal([])
  })

  it('reports a program that does not exist, and one that ends at once', async () => {
    const missing = await errorOf(open('legacy', { command: 'mcp-no-such-program' }))
    expect(missing).to.include({ reason: 'unreachable' })
    expect(missing.message).to.contain('mcp-no-such-program').and.contain('ENOENT')
    const crashed = await errorOf(open('crash'))
    expect(crashed.message).to.contain('exit code 7').and.not.contain('configuration')
    // The script, and no other argument.
    expect(crashed.message).to.contain(` ${basename(SCRIPT)} has ended`)
    expect(crashed.output).to.contain('no configuration')
  })

  it('calls a modern server that started slowly', async () => {
    const connection = await open('slow')
    expect(connection).to.include({ era: 'modern', revision: '2026-07-28' })
    expect(await callOf(connection, 'x')).to.contain('"io.modelcontextprotocol/protocolVersion":"2026-07-28"')
  })

  it('starts a program again without the probe if the probe ended it', async () => {
    const connection = await open('strict')
    expect(connection.era).to.equal('legacy')
    expect(await callOf(connection, 'x')).to.equal('ok')
  })

  it('rejects the calls of a program that ends, and reports its end', async () => {
    const errors: RemoteError[] = []
    const connection = await open('dies', {}, { onClosed: error => void errors.push(error) })
    const error = await errorOf(connection.request('tools/call', { name: 'x' }))
    expect(error).to.include({ reason: 'lost', executed: 'maybe' })
    expect(error.message).to.contain('exit code 9').and.not.contain('memory')
    expect(error.output).to.contain('out of memory')
    expect(errors).to.have.length(1)
    expect(await errorOf(connection.request('ping'))).to.include({ reason: 'lost', executed: 'no' })
  })

  it('refuses an error that is larger than the limit of its request', async () => {
    const connection = await open('largeError')
    const error = await errorOf(connection.request('tools/call', { name: 'x' }, { maxResult: 1_000 }))
    expect(error).to.include({ reason: 'too-large' })
  })

  it('passes on no message with too many levels', async () => {
    const passed: unknown[] = []
    const receive = (message: { readonly params: object }) => void passed.push(message.params)
    const onRequest: ConnectOptions['onRequest'] = async request => {
      receive(request)
      return {}
    }
    const connection = await open('deep', {}, { capabilities: { elicitation: {} }, onRequest, onNotification: receive })
    expect(await callOf(connection, 'log')).to.equal('ok')
    expect(await callOf(connection, 'ask')).to.equal('-32602')
    expect(passed).to.deep.equal([])
    const errorFor = (name: string) => errorOf(connection.request('tools/call', { name }))
    expect(await errorFor('error')).to.include({ reason: 'rpc', code: -32_021, message: 'no', data: undefined })
  })

  it('ends when a message of the program cannot be handled', async () => {
    const mark = newMark()
    const closed: RemoteError[] = []
    const onNotification = () => {
      throw new RangeError('cannot handle')
    }
    const connection = await open('logs', {}, { onNotification, onClosed: error => void closed.push(error) }, mark)
    expect(await errorOf(connection.request('tools/call', { name: 'x' }))).to.include({ reason: 'invalid' })
    expect(closed).to.have.length(1)
    await eventually('its end', () => processesOf(mark).length === 0)
  })

  it('refuses a message above the limit of its request, without parsing it', async () => {
    const connection = await open('huge', {}, { maxMessage: 2_000_000 })
    for (const name of ['first', 'last']) {
      expect(await errorOf(connection.request('tools/call', { name }))).to.include({ reason: 'too-large' })
    }
    expect(await connection.request('tools/call', { name: 'small' })).to.have.property('content')
    await connection.close()
  })

  it('ends a program that ignores SIGTERM, with its children', async () => {
    const mark = newMark()
    const connection = await open('stubborn', {}, {}, mark)
    await eventually('the child', () => processesOf(mark).length === 2)
    await connection.close()
    // The system ends children of a killed group asynchronously.
    await eventually('their end', () => processesOf(mark).length === 0)
  })

  it('leaves no process after SIGKILL of the host', async () => {
    const mark = newMark()
    const args = [compiledFile('test/remote/support/killed-host.ts'), SCRIPT, mark]
    const host = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(host.stdout, 'data')
    await eventually(
      'two stubborn programs with children, a third program, and the host',
      () => processesOf(mark).length === 6,
    )
    host.kill('SIGKILL')
    await once(host, 'exit')
    await eventually('the end of all', () => processesOf(mark).length === 0)
  })
})
