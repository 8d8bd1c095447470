// Follows the getting-started guide with the packed package: from an empty folder to a protected server. Prints the duration of each
// step, and ends at the first failure: `npm run test:getting-started`.
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { startFakeBrowser, stopFakeBrowsers } from '../cli/fake-browser.ts'
import { removeFolders } from '../config/folder.ts'
import { Browser } from '../support/form-browser.ts'
import { freePort } from '../support/free-port.ts'
import { packPackage } from '../support/packed.ts'
import { killAll, run, type Served, serve, tryRun } from './processes.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Milliseconds, enough for a CI machine under load. */
const TIMEOUT = 10 * 60_000
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error']
const DATES = ['from=2026-12-24', 'to=2026-12-31']

const begun = performance.now()
const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1).padStart(6)} s`

/** Runs a step and prints how long it took. */
async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const result = await work()
  console.log(`${seconds(start)}  ${name}`)
  return result
}

function expectThat(holds: boolean, what: string): void {
  if (!holds) throw new Error(what)
}

async function pack(folder: string): Promise<string[]> {
  await packPackage(folder)
  await run(join(ROOT, 'create'), ['npm', 'pack', '--pack-destination', folder, ...QUIET])
  const names = (await readdir(folder)).filter(name => name.endsWith('.tgz'))
  expectThat(names.length === 2, `two tarballs, not ${names}`)
  return names.map(name => join(folder, name))
}

/** Two versions of a file's text, which must differ. */
async function edit(file: string, change: (text: string) => string): Promise<void> {
  const text = await readFile(file, 'utf8')
  const changed = change(text)
  expectThat(changed !== text, `nothing was changed in ${file}`)
  await writeFile(file, changed)
}

interface Session {
  readonly client: Client
  readonly transport: StreamableHTTPClientTransport
  /** How often it was told that the list of tools is another one. */
  told(): number
  /** Resolves once it was told so, and the list is as it should be; `from` is how often it was told before. */
  toldUntil(from: number, holds: (tools: ListedTools) => boolean): Promise<void>
}

type ListedTools = Awaited<ReturnType<Client['listTools']>>['tools']

/** The official client, with a session and its stream. */
async function connect(url: string): Promise<Session> {
  const client = new Client({ name: 'getting-started', version: '1.0.0' })
  const telling = new EventTarget()
  let count = 0
  client.setNotificationHandler(ToolListChangedNotificationSchema, async () => {
    count += 1
    telling.dispatchEvent(new Event('told'))
  })
  const transport = new StreamableHTTPClientTransport(new URL(url))
  // Its types are not written for exactOptionalPropertyTypes.
  await client.connect(transport as never)
  async function toldUntil(from: number, holds: (tools: ListedTools) => boolean): Promise<void> {
    for (let seen = from; ; seen += 1) {
      if (count === seen) await once(telling, 'told')
      if (holds((await client.listTools()).tools)) return
    }
  }
  return { client, transport, told: () => count, toldUntil }
}

async function callDays({ client }: Session): Promise<void> {
  const { structuredContent } = await client.callTool({
    name: 'days_between',
    arguments: { from: '2026-12-24', to: '2026-12-31' },
  })
  expectThat(JSON.stringify(structuredContent) === '{"days":7,"weekday":"Thursday"}', JSON.stringify(structuredContent))
}

/** Adds a tool and changes another while the session is open: it is told, and lives. */
async function editWhileOpen(project: string, session: Session): Promise<void> {
  const { transport, told, toldUntil } = session
  const { sessionId } = transport
  expectThat(sessionId !== undefined, 'the client got no session')
  const first = told()
  await run(project, ['npx', 'mcp-host', 'add', 'tool', 'one_more'])
  await toldUntil(first, tools => tools.some(({ name }) => name === 'one_more'))
  const second = told()
  await edit(join(project, 'tools/days_between.ts'), text => text.replace('Counts the days', 'Counts all the days'))
  await toldUntil(second, tools => tools.some(({ description = '' }) => description.startsWith('Counts all the days')))
  await callDays(session)
  expectThat(transport.sessionId === sessionId, 'the session is another one')
}

/** The config of `init --protected` in the place of the open one, as its comment says. */
async function protect(project: string, folder: string, port: number): Promise<void> {
  await run(folder, [
    join(project, 'node_modules/.bin/mcp-host'),
    'init',
    'protected',
    '--yes',
    '--protected',
    '--name',
    'app',
  ])
  await writeFile(join(project, 'mcp.config.ts'), await readFile(join(folder, 'protected/mcp.config.ts'), 'utf8'))
  await edit(join(project, 'mcp.config.ts'), text => text.replaceAll('3000', String(port)))
  const missing = await tryRun(project, ['npm', 'run', 'check'])
  const [, line] = /run: (npm i .*)$/m.exec(missing.text) ?? []
  expectThat(missing.code !== 0 && line !== undefined, `a check that says what to install: ${missing.text}`)
  await run(project, [...String(line).split(' '), ...QUIET])
}

/** Logs in by a browser that clicks on "Allow"; then one tool may be called, and the other asks for another scope. */
async function useProtected(project: string, url: string, home: string): Promise<void> {
  const browser = await startFakeBrowser(address => new Browser(address.origin).allow(address, 'ada'))
  const env = { ...browser.env, MCP_HOST_HOME: home, MCP_HOST_TOKEN_KEY: '' }
  const mcpHost = ['npx', 'mcp-host']
  const before = await tryRun(project, [...mcpHost, 'call', url, 'days_between', ...DATES], env)
  expectThat(before.code === 1 && before.text.includes('log in with'), `a call without a login: ${before.text}`)
  await step('  login, by a browser', async () => {
    const text = await run(project, [...mcpHost, 'login', url], env)
    expectThat(/^logged in at /m.test(text) && browser.opened.length === 1, text)
  })
  await step('  call, with the token', async () => {
    const text = await run(project, [...mcpHost, 'call', url, 'days_between', ...DATES], env)
    expectThat(text.includes('"days": 7'), text)
  })
  await step('  call, refused for another scope', async () => {
    const { code, text } = await tryRun(project, [...mcpHost, 'call', url, 'server_status'], env)
    expectThat(code === 1 && text.includes('--add-scope mcp.admin'), text)
  })
}

async function goTheWay(folder: string): Promise<void> {
  const [home, project] = [join(folder, 'home'), join(folder, 'app')]
  const tarballs = await step('pack (no part of the way)', () => pack(folder))
  const host = tarballs.find(name => /mcp-host-\d/.test(name) && !name.includes('create-')) ?? ''
  const packages = tarballs.map(name => `--package=${name}`)
  await mkdir(home)
  await step('init, by npm create', () =>
    run(folder, ['npm', 'exec', '--yes', ...packages, ...QUIET, '--', 'create-mcp-host', 'app', '--yes']),
  )
  await step('npm install', () => run(project, ['npm', 'install', host, ...QUIET]))
  await step('npm run check', () => run(project, ['npm', 'run', 'check']))
  await step('npm test', () => run(project, ['npm', 'test']))

  const port = await freePort()
  const url = `http://127.0.0.1:${port}/mcp`
  await edit(join(project, 'mcp.config.ts'), text => text.replace('3000', String(port)))
  const dev = async (): Promise<Served> => {
    const served = serve(project, ['npm', 'run', 'dev'])
    await served.printed(/^listening on http:/m)
    return served
  }
  const open = await step('npm run dev', dev)
  const session = await connect(url)
  await step('call, with the official client', () => callDays(session))
  await step('edit, while its session is open', () => editWhileOpen(project, session))
  console.log(`          it was told ${session.told()} times, in one session`)
  await session.client.close()
  await open.stop()

  const guarded = await step('protect it, and npm run dev', async () => {
    await protect(project, folder, port)
    return dev()
  })
  await step('use it, protected:', () => useProtected(project, url, home))
  await guarded.stop()
}

const folder = await mkdtemp(join(tmpdir(), 'mcp-host-getting-started-'))
let code = 1
const bound = setTimeout(() => {
  console.error(`not finished after ${TIMEOUT / 1000} s`)
  process.exit(1)
}, TIMEOUT)
// What was started ends with this process, however that ends.
process.once('exit', killAll)
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(1))
try {
  await goTheWay(folder)
  console.log(`${seconds(begun)}  all of it`)
  code = 0
} catch (error) {
  console.error(`failed: ${error instanceof Error ? error.message : error}`)
} finally {
  clearTimeout(bound)
  killAll()
  await stopFakeBrowsers()
  await removeFolders()
  await rm(folder, { recursive: true, force: true })
}
process.exit(code)
