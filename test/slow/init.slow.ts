// Tests projects of `mcp-host init` and `add` with the packed package: compile, check, test, and package a plugin. `npx
// mocha 'test/slow/*.slow.ts'`.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { freePort } from '../support/free-port.ts'
import { pending } from '../support/needs-program.ts'
import { PACKAGE_ENV as env, linkDependencies, packPackage, unpackInto } from '../support/packed.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

let outer: string
let tarball: string
/** The project whose CLI creates the other projects. */
let first: string

const tarballIn = async (folder: string, start: string) =>
  join(folder, (await readdir(folder)).find(name => name.startsWith(start) && name.endsWith('.tgz')) ?? '')

/** What it printed, to either stream, and its exit code. */
async function said(folder: string, command: string, ...args: string[]) {
  const { stdout, stderr, code = 0 } = await run(command, args, { cwd: folder, env }).catch(error => error)
  return { text: `${stdout}${stderr}`, code }
}

async function works(folder: string, command: string, ...args: string[]): Promise<string> {
  const { text, code } = await said(folder, command, ...args)
  expect(code, `${command} ${args.join(' ')}: ${text}`).to.equal(0)
  return text
}

const npm = (folder: string, ...args: string[]) => works(folder, 'npm', ...args, '--no-audit', '--no-fund')
const mcpHost = (folder: string, ...args: string[]) => works(folder, join(first, 'node_modules/.bin/mcp-host'), ...args)

const check = (folder: string, ...args: string[]) =>
  said(folder, join(first, 'node_modules/.bin/mcp-host'), 'check', ...args)

async function init(name: string, ...flags: string[]): Promise<string> {
  await mcpHost(outer, 'init', name, '--yes', ...flags)
  const folder = join(outer, name)
  await linkDependencies(folder, tarball)
  return folder
}

/** `mcp-host start` in a project, once it listens; nothing in its environment but the way to programs. */
async function startIn(folder: string): Promise<{ kill(): Promise<void> }> {
  const program = [join(first, 'node_modules/mcp-host/dist/cli/bin.js'), 'start']
  const child = spawn(process.execPath, program, {
    cwd: folder,
    env: { PATH: env.PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  let text = ''
  const listening = new Promise<void>(resolve => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        if (/^listening on http:/m.test(text)) resolve()
      })
    }
  })
  const failed = closed.then(() => {
    throw new Error(`it ended before it listened: ${text}`)
  })
  await Promise.race([listening, failed])
  failed.catch(() => undefined)
  return {
    async kill() {
      child.kill('SIGKILL')
      await closed
    },
  }
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const post = (url: string, session: string | undefined, message: object) =>
  fetch(url, {
    method: 'POST',
    headers: { ...HEADERS, ...(session !== undefined && { 'mcp-session-id': session }) },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })

/** Opens a session as a client of 2025-06-18 does; its id. */
async function openSession(url: string): Promise<string> {
  const clientInfo = { name: 'init', version: '1.0.0' }
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
  const answer = await post(url, undefined, { id: 1, method: 'initialize', params })
  await answer.text()
  const session = answer.headers.get('mcp-session-id') ?? ''
  expect(session).to.not.equal('')
  await (await post(url, session, { method: 'notifications/initialized' })).text()
  return session
}

/** The status, and how many days the tool counts. */
async function callDays(url: string, session: string): Promise<[number, number | undefined]> {
  const params = { name: 'days_between', arguments: { from: '2026-12-24', to: '2026-12-31' } }
  const answer = await post(url, session, { id: 2, method: 'tools/call', params })
  const days = /"days":(\d+)/.exec(await answer.text())?.[1]
  return [answer.status, days === undefined ? undefined : Number(days)]
}

async function passesItsOwnScripts(folder: string) {
  await npm(folder, 'run', 'check')
  expect(await npm(folder, 'test')).to.match(/^(?:#|ℹ) pass [1-9]/m)
}

before(async () => {
  outer = await mkdtemp(join(tmpdir(), 'mcp-host-init-'))
  tarball = await packPackage(outer)
  const flags = ['first', '--yes', '--protected', '--store', 'redis']
  await works(outer, process.execPath, join(ROOT, 'dist/cli/bin.js'), 'init', ...flags)
  first = join(outer, 'first')
  await linkDependencies(first, tarball)
  const plugin = await init('mcp-host-audit', '--plugin')
  await works(plugin, 'npx', 'tsc')
  expect(await npm(plugin, 'test')).to.match(/fail 0$/m)
  await npm(plugin, 'pack', '--pack-destination', outer)
  await unpackInto(first, 'mcp-host-audit', await tarballIn(outer, 'mcp-host-audit-'))
})

after(() => rm(outer, { recursive: true, force: true }))

describe('project of mcp-host init', () => {
  it('passes check and test after mcp-host add of every kind, with the packed plugin: TypeScript, protected, sessions in Redis', async () => {
    for (const kind of ['tool', 'resource', 'prompt', 'plugin']) await mcpHost(first, 'add', kind, `my-${kind}`)
    const file = join(first, 'mcp.config.ts')
    const imports = "import { audit } from 'mcp-host-audit'\nimport { myPlugin } from './plugins/my-plugin.ts'\n"
    const config = (await readFile(file, 'utf8'))
      .replace('\n\nexport default', `\n${imports}\nexport default`)
      .replace(
        'plugins: {',
        'plugins: {\n    audit: audit({ slowAfter: 5 }),\n    myPlugin: myPlugin({ slowAfter: 5 }),',
      )
    expect(config).to.include('audit({').and.include('myPlugin({').and.include(imports)
    await writeFile(file, config)
    // `@ts-expect-error`: the compiler must refuse each misspelled option, and fails here if it accepts one.
    const rejected = `${imports}// @ts-expect-error\naudit({ slowAftr: 5 })\n// @ts-expect-error\nmyPlugin({ slowAftr: 5 })\n`
    await writeFile(join(first, 'rejected.ts'), rejected)
    await passesItsOwnScripts(first)
    await writeFile(file, config.replace('audit({ slowAfter', 'audit({ slowAftr'))
    const { text, code } = await check(first)
    expect([code, text]).to.satisfy(
      ([code, text]: [number, string]) => code === 2 && /mcp\.config\.ts:\d+.*slowAftr[\s\S]*slowAfter/.test(text),
    )
    await writeFile(file, config)
  })

  it('passes check and test: YAML, protected, in an existing CommonJS package', async () => {
    await mkdir(join(outer, 'yaml'))
    await writeFile(join(outer, 'yaml/package.json'), JSON.stringify({ name: 'yaml', version: '1.0.0' }))
    await passesItsOwnScripts(await init('yaml', '--protected', '--format', 'yaml'))
  })
})

describe('project of mcp-host init with store-sqlite', () => {
  before(function () {
    if (!isBuiltin('node:sqlite')) pending(this, 'no node:sqlite in this Node: 22.13 or later has it')
  })

  it('starts without environment variables and resumes its session after a kill', async () => {
    const folder = await init('kept', '--store', 'file')
    const port = await freePort()
    const file = join(folder, 'mcp.config.ts')
    await writeFile(file, (await readFile(file, 'utf8')).replace('3000', String(port)))
    const url = `http://127.0.0.1:${port}/mcp`
    const first = await startIn(folder)
    const session = await openSession(url)
    const secrets = await readFile(join(folder, 'state/secrets'), 'utf8')
    expect(secrets).to.match(/^[\w-]{43}\n$/)
    expect(await callDays(url, session)).to.deep.equal([200, 7])
    await first.kill()

    const second = await startIn(folder)
    expect(await callDays(url, session)).to.deep.equal([200, 7])
    expect((await callDays(url, `${session.slice(0, -1)}-`))[0]).to.equal(404)
    expect(await readFile(join(folder, 'state/secrets'), 'utf8')).to.equal(secrets)
    await second.kill()
  })
})

describe('plugin of mcp-host init --plugin', () => {
  it('packs its declarations without sources and tests', async () => {
    const { text } = await said(outer, 'tar', '-tzf', await tarballIn(outer, 'mcp-host-audit-'))
    const files = text.trim().split('\n').sort()
    expect(files).to.deep.equal(
      ['README.md', 'dist/index.d.ts', 'dist/index.js', 'package.json'].map(name => `package/${name}`),
    )
  })

  it('its package name works in a YAML config, with option validation at startup', async () => {
    const text = (options: string) => `server: { name: u, version: 1.0.0 }
toolsets: { main: ./tools/days_between.ts }
routes: { /mcp: { toolsets: main } }
plugins: { transport-streamable: {}, mcp-host-audit: ${options} }
`
    const checkWith = async (options: string) => {
      await writeFile(join(first, 'mcp.config.yaml'), text(options))
      return check(first, '--config', 'mcp.config.yaml')
    }
    expect((await checkWith('{ slowAfter: 5 }')).code).to.equal(0)
    const wrong = await checkWith('{ slowAftr: 5 }')
    expect(wrong.code).to.equal(2)
    expect(wrong.text).to.match(/slowAftr[\s\S]*"slowAfter"/)
  })
})

describe('examples of the package', () => {
  it('run from the installed package', async () => {
    for (const config of ['mcp.config.example.ts', 'examples/protected/mcp.config.ts']) {
      await mcpHost(first, 'check', '--config', `node_modules/mcp-host/${config}`)
    }
  })
})
