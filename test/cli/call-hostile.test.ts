// Tests `mcp-host call` and `list` with a malicious server: terminal escapes, endless responses and memory.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { checkResult } from '../../cli/client/call.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { itThorough } from '../support/thorough.ts'
import { type Ended, startCli, stopAll } from './in-process.ts'
import { testContext } from './run-command.ts'

type Message = { readonly id?: number; readonly method?: string; readonly params?: Record<string, unknown> }
/** What the server answers a method with: a result, an error, or whatever it writes itself. */
type Reply = object | ((response: ServerResponse, message: Message) => void)

const ESCAPES = '\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\r\nforged row\u2028and more'
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/u
/** What readline itself writes around a prompt. */
const MOVES = new RegExp(`${String.fromCharCode(27)}\\[\\d*[A-K]`, 'g')
const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more })
const jsonOf = (id: unknown, result: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result })

describe('mcp-host call and list with a malicious server', () => {
  let folder: string
  let url: string
  /** Replies by path. Each command has its own path, so that commands can run at the same time. */
  const repliesOf = new Map<string, Readonly<Record<string, Reply>>>()
  /** Called for the response to a request of the server. */
  let answered: (() => void) | undefined

  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const message = JSON.parse(text) as Message
    const replies = repliesOf.get(request.url ?? '') ?? {}
    const { id, method = '' } = message
    if (id === 99) answered?.()
    if (id === undefined || method === '') return void response.writeHead(202).end()
    const initialized = { protocolVersion: '2025-11-25', serverInfo: { name: `s${ESCAPES}`, version: '1' } }
    const reply: Reply | undefined =
      method === 'initialize' && typeof replies[method] !== 'function'
        ? { ...initialized, capabilities: { tools: {}, resources: {}, prompts: {} }, ...replies['initialize'] }
        : replies[method]
    if (typeof reply === 'function') return reply(response, message)
    response.setHeader('Content-Type', 'application/json')
    if (reply !== undefined) return void response.end(jsonOf(id, reply))
    response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } }))
  })

  before(async () => {
    folder = await makeFolder({})
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await stopAll()
    await removeFolders()
  })

  function start(args: readonly string[], given: Readonly<Record<string, Reply>>, terminal = false) {
    const [verb = '', ...more] = args
    const path = `/mcp/${repliesOf.size}`
    repliesOf.set(path, given)
    return startCli([verb, url + path, ...more], folder, { MCP_HOST_HOME: folder }, { terminal })
  }
  const run = (args: readonly string[], given: Readonly<Record<string, Reply>>): Promise<Ended> =>
    start(args, given).ended

  function expectPlain({ stdout, stderr }: Ended): string {
    expect(stdout.replaceAll('\n', '')).not.to.match(UNPRINTABLE)
    expect(stderr.replaceAll('\n', '')).not.to.match(UNPRINTABLE)
    return stdout
  }

  it('list prints a row for each item, without escapes, in a pipe, too', async () => {
    const evil = tool(`t${ESCAPES}`, {
      description: ESCAPES.trim(),
      inputSchema: { type: 'object', properties: { [ESCAPES]: { enum: [ESCAPES] } } },
    })
    const ended = await run(['list'], {
      'tools/list': { tools: [evil, tool('plain')] },
      'resources/list': { resources: [{ uri: `x://a${ESCAPES}`, name: ESCAPES }] },
      'resources/templates/list': { resourceTemplates: [{ uriTemplate: `x://{a}${ESCAPES}`, name: ESCAPES }] },
      'prompts/list': { prompts: [{ name: `p${ESCAPES}`, arguments: [{ name: ESCAPES }] }] },
    })
    const stdout = expectPlain(ended)
    expect(ended.code).to.equal(0)
    expect(stdout.split('\n').filter(line => line.startsWith('forged'))).to.deep.equal([])
    // Server, three titles, five items, three empty lines and the last line break.
    expect(stdout.split('\n')).to.have.length(13)
  })

  itThorough('list prints 130,000 tools, and one long name does not widen the rows of others', async () => {
    const tools = Array.from({ length: 130_000 }, (_, index) => tool(`t${index}`))
    const { code, stdout } = await run(['list', '--tools'], {
      'tools/list': { tools: [tool('x'.repeat(1_000_000)), ...tools] },
    })
    expect([code, stdout.split('\n').length > 130_000]).to.deep.equal([0, true])
    expect(stdout.length).to.be.lessThan(130_000 * 110)
  })

  itThorough('end with an error for an answer, an event or a list of more than 64 MB after decompression', async () => {
    const huge = gzipSync(`${' '.repeat(66 * 2 ** 20)}{}`)
    const json: Reply = response => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(huge)
    }
    const events: Reply = response => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' })
      response.end(gzipSync(`data: "${'x'.repeat(66 * 2 ** 20)}"\n\n`))
    }
    let pages = 0
    const manyPages: Reply = (response, { id }) => {
      const page = { tools: [tool(`t${pages++}`, { description: 'x'.repeat(9 * 2 ** 20) })], nextCursor: `c${pages}` }
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(jsonOf(id, page))
    }
    const ends = [
      await run(['list', '--tools'], { 'tools/list': json }),
      await run(['call', 'a'], { 'tools/list': { tools: [] }, 'tools/call': events }),
      await run(['list', '--tools'], { 'tools/list': manyPages }),
    ]
    for (const { code, stderr } of ends) {
      expect(stderr).to.include('the server sent more than 64 MB in one response')
      expect(code).to.equal(1)
    }
    expect(pages).to.be.within(7, 8)
  })

  it('call prints fields and defaults of an elicitation without escapes, each on one line', async () => {
    const requestedSchema = {
      type: 'object',
      properties: { [`f${ESCAPES}`]: { type: 'string', default: ESCAPES, title: ESCAPES, description: ESCAPES } },
    }
    const running = start(
      ['call', 'ask'],
      {
        'tools/list': { tools: [tool('ask')] },
        'tools/call': (response, { id }) => {
          const ask = {
            jsonrpc: '2.0',
            id: 99,
            method: 'elicitation/create',
            params: { message: ESCAPES, requestedSchema },
          }
          response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(`data: ${JSON.stringify(ask)}\n\n`)
          answered = () => response.end(`data: ${jsonOf(id, { content: [{ type: 'text', text: ESCAPES }] })}\n\n`)
        },
      },
      true,
    )
    await running.logged(/forged row\\u2028and more\]: /)
    running.child.stdin.write('\r')
    await running.logged(/Send this\?/)
    running.child.stdin.write('y\r')
    const { stdout, stderr, code } = await running.ended
    expect([code, stdout.replaceAll('\n', '')]).to.satisfy(
      ([exit, text]: [number, string]) => exit === 0 && !UNPRINTABLE.test(text),
    )
    // readline moves the cursor itself: nothing else may.
    expect(stderr.replaceAll(MOVES, '').replaceAll(/[\r\n]/g, '')).not.to.match(UNPRINTABLE)
    expect(stderr).not.to.match(/^forged/m)
  })

  it('call validates the result against the output schema, with patterns in another thread', async () => {
    const outputSchema = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
    const result = (a: unknown) => ({ content: [], structuredContent: { a } })
    const replies = (a: unknown) => ({
      'tools/list': { tools: [tool('a', { outputSchema })] },
      'tools/call': result(a),
    })
    const [right, wrong] = await Promise.all([run(['call', 'a'], replies('aaa')), run(['call', 'a'], replies(1))])
    expect(right).to.include({ code: 0, stdout: '{\n  "a": "aaa"\n}\n', stderr: '' })
    expect([wrong.code, wrong.stderr]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && /does not match the tool's output schema: .*string/.test(text),
    )
    const context = testContext()
    const { signal } = new AbortController()
    const hostile = result(`${'a'.repeat(60)}!`)
    await checkResult(hostile, outputSchema, context, signal, 100)
    expect(context.text.stderr).to.match(/^note: the result was not validated .*: it took more than 0\.1 s\n$/)
    const leaving = new AbortController()
    const checking = checkResult(hostile, outputSchema, context, leaving.signal)
    leaving.abort(new Error('interrupted'))
    expect(String(await rejectionOf(checking))).to.include('interrupted')
  })

  it('call prints a result that does not match the output schema, then the mismatch', async () => {
    const outputSchema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
    const lists = { 'tools/list': { tools: [tool('a', { outputSchema })] } }
    const content = [{ type: 'text', text: 'the reason' }]
    const [wrong, missing, failed] = await Promise.all([
      run(['call', 'a'], { ...lists, 'tools/call': { content, structuredContent: { a: 1 } } }),
      run(['call', 'a'], { ...lists, 'tools/call': { content } }),
      run(['call', 'a'], { ...lists, 'tools/call': { content, isError: true } }),
    ])
    expect(wrong).to.include({ code: 1, stdout: 'the reason\n{\n  "a": 1\n}\n' })
    expect(wrong.stderr).to.match(/^mcp-host: the structured content does not match .*\n$/)
    expect(missing).to.include({ code: 1, stdout: 'the reason\n' })
    expect(missing.stderr).to.match(/^mcp-host: the result has no structured content, .*\n$/)
    expect(failed).to.include({ code: 1, stdout: 'the reason\n', stderr: 'mcp-host: the tool a failed\n' })
  })

  it('call prints a result with invalid members, and a warning', async () => {
    const content = [
      { type: 'text', text: 'fine' },
      { type: 'image', mimeType: 'image/png' },
    ]
    const replies = { 'tools/list': { tools: [tool('a')] }, 'tools/call': { content, isError: null } }
    const ended = await run(['call', 'a'], replies)
    expect(ended, ended.stderr).to.deep.include({
      code: 0,
      stdout: 'fine\n{"type":"image","mimeType":"image/png"}\n',
      stderr: 'warning: the result of the tool has invalid content, isError\n',
    })
  })

  it('end at once if a stream ends without a response', async () => {
    const ended = 'mcp-host: error MH3211: the server ended its response without a result\n'
    const headers = { 'Content-Type': 'text/event-stream' }
    const silent: Reply = response => void response.writeHead(200, headers).end(': nothing\n\n')
    const noise: Reply = response => {
      response.writeHead(200, headers)
      const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }
      response.end(`data: ${JSON.stringify(note)}\n\ndata: ${jsonOf(999, {})}\n\n`)
    }
    // The official client asks for the rest of this one, and this server has no GET.
    const resumable: Reply = response => {
      response.writeHead(200, headers)
      response.end('id: 1\nretry: 1\ndata: \n\n')
    }
    const broken: Reply = response => {
      response.writeHead(200, headers).write(': begun\n\n', () => response.destroy())
    }
    const accepted: Reply = response => void response.writeHead(202).end()
    const lists = { 'tools/list': { tools: [tool('a')] } }
    const cases = Object.entries({ silent, noise, resumable, broken, accepted })
    const ends = cases.flatMap(([what, reply]) => [
      [`list: ${what}`, run(['list', '--tools'], { 'tools/list': reply })] as const,
      [`call: ${what}`, run(['call', 'a'], { ...lists, 'tools/call': reply })] as const,
    ])
    const uncertain = ended.replace('\n', '; the tool may have been executed: repeat the call if that is safe\n')
    for (const [what, end] of ends) {
      const { code, stderr } = await end
      const message = what.startsWith('call') ? uncertain : ended
      expect([code, stderr.endsWith(message)], `${what}: ${stderr}`).to.deep.equal([1, true])
    }
    const opening = await run(['list'], { initialize: silent })
    expect(opening).to.include({ code: 1, stderr: ended })
  })

  it('have one deadline for the whole command', async () => {
    const never: Reply = () => {}
    const lists = { 'tools/list': { tools: [tool('a')] } }
    const late = 'mcp-host: error MH3205: no response within 0.2 s; to wait longer, use --timeout <seconds>\n'
    const cases: [string[], Record<string, Reply>][] = [
      [['list'], { initialize: never }],
      [['list'], { 'tools/list': never }],
      [['call', 'a'], { initialize: never }],
      [['call', 'a'], { 'tools/list': never }],
      [['call', 'a'], { ...lists, 'tools/call': never }],
    ]
    const ends = await Promise.all(cases.map(([args, replies]) => run([...args, '--timeout', '0.2'], replies)))
    for (const ended of ends) expect(ended).to.deep.include({ code: 1, stdout: '', stderr: late })
  })

  it('list shows the valid entries of a list, and one warning for each invalid one', async () => {
    const tools = [
      tool('good', { title: 'Good' }),
      { name: 'empty', inputSchema: {} },
      { name: 'none', inputSchema: null, title: null },
      tool('output', { outputSchema: { anyOf: [] }, title: null, description: 1 }),
      tool('deep', { inputSchema: { type: 'object', properties: { a: { default: null } } } }),
      { inputSchema: { type: 'object' } },
      null,
    ]
    const { code, stdout, stderr } = await run(['list', '--json'], {
      'tools/list': { tools, nextCursor: null },
      'resources/list': { resources: [{ uri: 'x://a', name: 'a', title: 1 }, { name: 'no uri' }], nextCursor: null },
    })
    const offer = JSON.parse(stdout)
    expect(code).to.equal(0)
    expect(offer.tools).to.deep.equal([
      tool('good', { title: 'Good' }),
      tool('empty'),
      tool('none'),
      tool('output'),
      tools[4],
    ])
    expect(offer.resources).to.deep.equal([{ uri: 'x://a', name: 'a' }])
    expect(offer.prompts).to.deep.equal([])
    expect(stderr.trim().split('\n').sort()).to.deep.equal([
      'warning: omitted resource "no uri": invalid uri',
      'warning: omitted tool 6: invalid name',
      'warning: omitted tool 7',
      'warning: resource "x://a": invalid title',
      'warning: the server declares prompts and does not support prompts/list',
      'warning: tool "empty": invalid inputSchema',
      'warning: tool "none": invalid title, inputSchema',
      'warning: tool "output": invalid title, description, outputSchema',
    ])
  })

  it('list shows all pages if one has an invalid entry, and limits its warnings', async () => {
    const page: Reply = (response, { id, params }) => {
      response.setHeader('Content-Type', 'application/json')
      const bad = Array.from({ length: 30 }, (_, index) => ({ name: `bad${index}`, inputSchema: {} }))
      const last = params?.['cursor'] === 'next'
      response.end(jsonOf(id, last ? { tools: [tool('last')], nextCursor: null } : { tools: bad, nextCursor: 'next' }))
    }
    const { code, stdout, stderr } = await run(['list', '--tools', '--json'], { 'tools/list': page })
    expect([code, JSON.parse(stdout).tools.length]).to.deep.equal([0, 31])
    expect(stderr.trim().split('\n')).to.have.length(21)
    const none = await run(['list', '--tools'], {})
    expect(none).to.include({ code: 0, stderr: 'warning: the server declares tools and does not support tools/list\n' })
    expect(
      (await run(['call', 'hidden'], { 'tools/call': { content: [{ type: 'text', text: 'here' }] } })).stdout,
    ).to.equal('here\n')
  })

  it('call passes on the error of a server for a tool that is not listed, and names tools only for an unknown one', async () => {
    const failing =
      (code: number): Reply =>
      (response, { id }) => {
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: `m${ESCAPES}` } }))
      }
    const tools = { tools: [tool(`backup${ESCAPES}`)] }
    const required = await run(['call', 'backups'], { 'tools/list': tools, 'tools/call': failing(-32_021) })
    expect(required.stderr).to.match(/^mcp-host: error \w+: the server returned error -32021: m/)
    const unknown = await run(['call', 'nothing'], { 'tools/list': tools, 'tools/call': failing(-32_602) })
    expect(unknown.stderr).to.match(/^mcp-host: error \w+: the server has no tool "nothing"; available: backup/)
    const pages = { 'tools/list': { tools: [tool('create_page')] }, 'tools/call': failing(-32_602) }
    expect((await run(['call', 'creat_page'], pages)).stderr).to.match(/did you mean "create_page"/)
    expect((await run(['call', 'delete_page'], pages)).stderr).to.match(/no tool "delete_page"; available: create_page/)
    for (const ended of [required, unknown]) {
      expectPlain(ended)
      expect([ended.code, ended.stderr.trimEnd().split('\n')]).to.satisfy(
        ([code, lines]: [number, string[]]) => code === 1 && lines.length === 1,
      )
    }
  })
})
