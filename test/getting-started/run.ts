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

/** Changes the text of a file, and checks that it differs. */
async function edit(file: string, change: (text: string) => string): Promise<void> {
  const text = await readFile(file, 'utf8')
  const changed = change(text)
  expectThat(changed !== text, `nothing was changed in ${file}`)
  await writeFile(file, changed)
}

interface Session {
  readonly client: Client
  readonly transport: StreamableHTTPClientTransport
  /** Number of notifications that the list of tools changed. */
  notifications(): number
  /** Resolves once a notification after number `from` arrived and the tools satisfy `holds`. */
  waitForTools(from: number, holds: (tools: ListedTools) => boolean): Promise<void>
}

type ListedTools = Awaited<ReturnType<Client['listTools']>>['tools']

/** The official client, with a session and its stream. */
async function connect(url: string): Promise<Session> {
  const client = new Client({ name: 'getting-started', version: '1.0.0' })
  const changes = new EventTarget()
  let count = 0
  client.setNotificationHandler(ToolListChangedNotificationSchema, async () => {
    count += 1
    changes.dispatchEvent(new Event('change'))
  })
  const transport = new StreamableHTTPClientTransport(new URL(url))
  // Its types are not written for exactOptionalPropertyTypes.
  await client.connect(transport as never)
  async function waitForTools(from: number, holds: (tools: ListedTools) => boolean): Promise<void> {
    for (let seen = from; ; seen += 1) {
      if (count === seen) await once(changes, 'change')
      if (holds((await client.listTools()).tools)) return
    }
  }
  return { client, transport, notifications: () => count, waitForTools }
}

async function callDays({ client }: Session): Promise<void> {
  const { structuredContent } = await client.callTool({
    name: 'days_between',
    arguments: { from: '2026-12-24', to: '2026-12-31' },
  })
  expectThat(JSON.stringify(structuredContent) === '{"days":7,"weekday":"Thursday"}', JSON.stringify(structuredContent))
}

/** Adds a tool and changes another. The client is notified, and its session stays open. */
async function editWhileOpen(project: string, session: Session): Promise<void> {
  const { transport, notifications, waitForTools } = session
  const { sessionId } = transport
  expectThat(sessionId !== undefined, 'the client got no session')
  const first = notifications()
  await run(project, ['npx', 'mcp-host', 'add', 'tool', 'one_more'])
  await waitForTools(first, tools => tools.some(({ name }) => name === 'one_more'))
  const second = notifications()
  await edit(join(project, 'tools/days_between.ts'), text => text.replace('Counts the days', 'Counts all the days'))
  await waitForTools(second, tools =>
    tools.some(({ description = '' }) => description.startsWith('Counts all the days')),
  )
  await callDays(session)
  expectThat(transport.sessionId === sessionId, 'the session changed')
}

/** Replaces the config with the one of `init --protected`, as its comment describes. */
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
  expectThat(missing.code !== 0 && line !== undefined, `check did not print what to install: ${missing.text}`)
  await run(project, [...String(line).split(' '), ...QUIET])
}

/** Logs in with a browser that selects "Allow". One tool can then be called, the other requires another scope. */
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

async function followGuide(folder: string): Promise<void> {
  const [home, project] = [join(folder, 'home'), join(folder, 'app')]
  const tarballs = await step('pack (not part of the guide)', () => pack(folder))
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
  console.log(`          ${session.notifications()} notifications of changed tools`)
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
// Started programs end with this process.
process.once('exit', killAll)
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(1))
try {
  await followGuide(folder)
  console.log(`${seconds(begun)}  total`)
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
