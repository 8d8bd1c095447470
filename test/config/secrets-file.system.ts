// Tests `secrets: { file }`: creation at first startup, file mode, reuse, validation and errors without secrets.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { chmod, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { loadConfig } from '../../core/config/load-config.ts'
import { createHost, examineConfig } from '../../core/create-host.ts'
import type { CreateHostOptions, Host } from '../../core/host.ts'
import { type Config, defineTool } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { runCli, stopAll } from '../cli/run-cli.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { pending } from '../support/needs-program.ts'
import { startReloading, stopReloading } from '../support/reloading-host.ts'
import { createTestLog } from '../support/start-host.ts'
import { makeFolder, removeFolders } from './folder.ts'

const FILE = './state/secrets'
const [ONE, OTHER] = ['a secret of a test that is long enough', 'another secret of a test that is long enough']

let before: string | undefined
beforeEach(() => {
  before = process.env['MCP_HOST_SECRETS']
  delete process.env['MCP_HOST_SECRETS']
})
afterEach(() => {
  if (before === undefined) delete process.env['MCP_HOST_SECRETS']
  else process.env['MCP_HOST_SECRETS'] = before
})
after(stopReloading)
after(stopAll)
after(removeFolders)

interface Made {
  readonly host: Host
  readonly keys: readonly string[]
  readonly ownKeys: boolean
  readonly log: ReturnType<typeof createTestLog>
}

/** A host that names the file, and the keys that it gives a plugin. It is closed again. */
async function make(directory: string, more: Partial<Config> = {}, options: CreateHostOptions = {}): Promise<Made> {
  const seen: { keys: string[]; ownKeys: boolean } = { keys: [], ownKeys: false }
  const watching = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup({ config: { keys }, ownKeys }) {
      Object.assign(seen, { keys: keys('test').map(key => key.toString('hex')), ownKeys })
    },
  })
  const log = createTestLog()
  const config: Config = {
    server: { name: 'test', version: '1.0.0' },
    http: { port: 0 },
    secrets: { file: FILE },
    toolsets: { all: [defineTool({ name: 'echo', handler: () => 'echoed' })] },
    routes: { '/mcp': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, watching: watching({}) },
    ...more,
  }
  const host = await createHost(config, { directory, log, ...options })
  await host.close()
  // The plugin reads `ownKeys`, a retired member.
  const lines = log.lines.filter(
    ({ message }) => !message?.includes('is deprecated') && !message?.includes('host.ownKeys'),
  )
  return { host, ...seen, log: { ...log, lines } }
}

/** The message of the start that fails; nothing of the file's text is in it. */
async function failure(directory: string, text = ''): Promise<string> {
  const error = await rejectionOf(make(directory))
  expect(error).to.include({ exitCode: 2 })
  const message = String(error)
  expect(message).to.include('secrets.file')
  for (const line of text.split('\n').filter(part => part.length > 3)) expect(message).to.not.include(line)
  return message
}

const withFile = (text: string) => makeFolder({ 'state/secrets': text })
const textOf = (folder: string) => readFileSync(join(folder, FILE), 'utf8')
const modeOf = (path: string) => statSync(path).mode & 0o777

describe('Secrets file creation', () => {
  it('creates a private file with one secret at startup and logs only its path', async () => {
    const folder = await makeFolder({})
    const { ownKeys, log, keys } = await make(folder)
    expect(textOf(folder)).to.match(/^[A-Za-z0-9_-]{43}\n$/)
    if (process.platform !== 'win32') {
      expect([modeOf(join(folder, FILE)), modeOf(join(folder, 'state'))]).to.deep.equal([0o600, 0o700])
    }
    expect(readdirSync(join(folder, 'state')).sort()).to.deep.equal(['.gitignore', 'secrets'])
    expect(readFileSync(join(folder, 'state/.gitignore'), 'utf8')).to.equal('*\n')
    expect(ownKeys).to.equal(false)
    const told = log.lines.filter(({ message }) => message?.includes('created a file with a secret'))
    expect(told.map(({ file }) => file)).to.deep.equal([join(folder, FILE)])
    expect(JSON.stringify(log.lines)).to.not.include(textOf(folder).trim()).and.not.include('no `secrets`')
    const again = await make(folder)
    expect(again.keys).to.deep.equal(keys)
    expect(JSON.stringify(again.log.lines)).to.not.include('created a file')
  })

  it('logs a warning if anyone can replace it in its folder, but not with a sticky bit', async function () {
    if (process.platform === 'win32') pending(this, 'modes are different on Windows')
    const folder = await makeFolder({ 'state/other': '' })
    const warned: string[] = []
    for (const mode of [0o755, 0o775, 0o1777, 0o777, 0o703]) {
      await chmod(join(folder, 'state'), mode)
      const { log } = await make(folder)
      const [warning] = log.lines.filter(({ level }) => level === 'warn')
      if (warning) warned.push(String(warning.message))
    }
    expect(warned).to.have.length(2)
    expect(warned.join()).to.match(/anyone on this machine can replace files in \S+state \(mode 777\); chmod o-w/)
  })

  it('produces one shared secret for eight hosts that start at once', async () => {
    const folder = await makeFolder({})
    const hosts = await Promise.all(Array.from({ length: 8 }, () => make(folder)))
    const made = hosts.flatMap(({ log }) => log.lines).filter(({ message }) => message?.includes('created a file'))
    const kinds = new Set(hosts.map(({ keys }) => keys.join()))
    expect([kinds.size, made.length, readdirSync(join(folder, 'state')).length]).to.deep.equal([1, 1, 2])
  })

  it('produces one shared secret for four processes in a race, 10 times', async () => {
    const folder = await makeFolder({})
    const [winners, secrets] = await raceOf(4, folder, 10)
    expect([winners, secrets.length]).to.deep.equal([10, 10])
    for (let round = 0; round < 10; round++)
      expect(readdirSync(join(folder, String(round))).sort()).to.deep.equal(['.gitignore', 'secrets'])
  })

  for (const purpose of ['inspect', 'stdio', 'test'] as const) {
    it(`is skipped for ${purpose}, which uses temporary keys or an existing file`, async () => {
      const folder = await makeFolder({})
      const { ownKeys, log } = await make(folder, {}, { purpose })
      expect(ownKeys).to.equal(false)
      expect(existsSync(join(folder, 'state'))).to.equal(false)
      expect(log.lines.filter(({ level }) => level === 'warn')).to.deep.equal([])
      const { keys } = await make(folder)
      expect((await make(folder, {}, { purpose })).keys).to.deep.equal(keys)
    })
  }

  it('is skipped if startup fails for another reason', async () => {
    const folder = await makeFolder({})
    const error = await rejectionOf(make(folder, { toolsets: { all: './gone.ts' } }))
    expect(String(error)).to.include('gone.ts').and.not.include('secrets')
    expect(existsSync(join(folder, 'state'))).to.equal(false)
  })

  it('fails `check` and startup if the file cannot be created', async () => {
    const folder = await makeFolder({ state: 'a file, and no folder' })
    const says = `${join(folder, FILE)} does not exist and cannot be created (`
    expect(await failure(folder))
      .to.include(says)
      .and.include('openssl rand -base64 32')
    const checked = await rejectionOf(make(folder, {}, { purpose: 'inspect' }))
    expect(String(checked)).to.include(says)
    await make(folder, {}, { purpose: 'test' })
  })
})

describe('Existing secrets file', () => {
  it('provides one secret per line: the first signs, all verify', async () => {
    const folder = await withFile(`\uFEFF\n  ${ONE}\r\n\n${OTHER}`)
    await chmod(join(folder, FILE), 0o600)
    const { keys, log } = await make(folder)
    expect(keys).to.have.length(2)
    expect(keys).to.deep.equal((await make(folder, { secrets: [ONE, OTHER] })).keys)
    expect(log.lines.filter(({ level }) => level === 'warn')).to.deep.equal([])
  })

  it('is ignored if MCP_HOST_SECRETS is set; a list in the config precedes both', async () => {
    const folder = await withFile('too little')
    process.env['MCP_HOST_SECRETS'] = ' , '
    expect(await failure(folder, 'too little')).to.include('line 1 of')
    process.env['MCP_HOST_SECRETS'] = OTHER
    const { keys } = await make(folder)
    expect((await make(folder, { secrets: [ONE] })).keys).to.not.deep.equal(keys)
    delete process.env['MCP_HOST_SECRETS']
    expect((await make(folder, { secrets: [OTHER] })).keys).to.deep.equal(keys)
    process.env['MCP_HOST_SECRETS'] = OTHER
    await rm(join(folder, 'state'), { recursive: true })
    await make(folder)
    expect(existsSync(join(folder, 'state'))).to.equal(false)
  })

  it('logs a warning if others can read or write it, but not for group read access', async function () {
    if (process.platform === 'win32') pending(this, 'files of Windows have no mode')
    const folder = await withFile(ONE)
    const warned: string[] = []
    for (const mode of [0o600, 0o400, 0o440, 0o640, 0o644, 0o604, 0o660, 0o602]) {
      await chmod(join(folder, FILE), mode)
      const { log } = await make(folder)
      const warnings = log.lines.filter(({ level }) => level === 'warn')
      if (warnings.length > 0) warned.push(mode.toString(8))
      for (const { message } of warnings) expect(message).to.include(`mode 0${mode.toString(8)}); chmod 600 ${folder}`)
    }
    expect(warned).to.deep.equal(['644', '604', '660', '602'])
  })

  for (const [what, text, says] of [
    ['empty', '\n \n', 'is empty; put a secret into it'],
    ['with a short line', `${ONE}\n\nshort one\n`, 'is shorter than 32 characters'],
    ['with a key in PEM', `-----BEGIN PUBLIC KEY-----\n${'A'.repeat(64)}\n-----END PUBLIC KEY-----\n`, 'a key in PEM'],
    ['that is no text', `${ONE}\n${'\u0001'.repeat(40)}`, 'is not text'],
    ['too large', `${ONE}\n`.repeat(2_000), 'has more than 64 kB'],
  ] as const) {
    it(`stops startup: ${what}`, async () => {
      expect(await failure(await withFile(text), text)).to.include(says)
    })
  }

  it('reports the line of an invalid secret', async () => {
    expect(await failure(await withFile(`${ONE}\n\nshort one\n`))).to.match(/: line 3 of \S+ is shorter/)
  })

  it('stops startup if it is a folder or a dangling link', async () => {
    expect(await failure(await makeFolder({ 'state/secrets/one': ONE }))).to.include('is a folder')
    const folder = await makeFolder({ 'state/other': '' })
    await symlink('./gone', join(folder, FILE))
    expect(await failure(folder)).to.include('it is a link to a missing file')
    expect(readdirSync(join(folder, 'state')).sort()).to.deep.equal(['other', 'secrets'])
  })

  it('stops startup without read permission', async function () {
    if (process.getuid?.() === 0 || process.platform === 'win32') pending(this, 'root may read every file')
    const folder = await withFile(ONE)
    await chmod(join(folder, FILE), 0)
    expect(await failure(folder)).to.match(/EACCES/)
  })

  it('is reported with its line in the config, next to other problems', async () => {
    const yaml = [
      'server: { name: a, version: "1" }',
      'secrets: { file: ./state/secrets }',
      'toolsets: { all: ./gone.ts }',
      'routes: { /mcp: { toolsets: all } }',
      'plugins: { transport-streamable: {} }',
    ]
    const folder = await makeFolder({ 'mcp.config.yaml': yaml.join('\n'), 'state/secrets': '' })
    const error = await rejectionOf(loadConfig({ cwd: folder }).then(loaded => examineConfig(loaded, createTestLog())))
    expect(String(error)).to.match(/mcp\.config\.yaml:2: MH1033 secrets\.file: /)
    expect(String(error)).to.include('gone.ts')
  })
})

describe('Invalid `secrets` value', () => {
  for (const [secrets, says] of [
    ['a text of the environment', 'secrets'],
    [{}, 'file'],
    [{ file: '' }, 'secrets'],
    [{ path: './x' }, 'path'],
  ] as const) {
    it(`is rejected: ${JSON.stringify(secrets)}`, async () => {
      const error = await rejectionOf(make(await makeFolder({}), { secrets: secrets as never }))
      expect(String(error)).to.include(says).and.not.include('a text of the environment')
    })
  }
})

const HERE_CONFIG = `import { defineTool } from HERE
export default {
  server: { name: 'test', version: '1.0.0' }, http: { port: 0 },
  secrets: { file: './state/secrets' },
  toolsets: { all: [defineTool({ name: 'echo', handler: () => 'echoed' })] },
  routes: { '/mcp': { toolsets: 'all' } }, plugins: { 'transport-streamable': {} },
}
`

describe('Reload with a secrets file', () => {
  it('requires a restart if the file is changed, replaced or missing, and creates none', async () => {
    const { folder, edit, reload } = await startReloading({ 'mcp.config.ts': HERE_CONFIG })
    const made = textOf(folder)
    expect((await reload()).restart).to.deep.equal([])
    await writeFile(join(folder, FILE), `${ONE}\n${made}`)
    expect((await reload()).restart).to.deep.equal(['secrets.file'])
    await rm(join(folder, FILE))
    expect((await reload()).restart).to.deep.equal(['secrets.file'])
    expect(existsSync(join(folder, FILE))).to.equal(false)
    await writeFile(join(folder, FILE), 'short', { mode: 0o600 })
    expect(String(await rejectionOf(reload()))).to.include('secrets.file: line 1 of')
    await writeFile(join(folder, FILE), made)
    expect((await reload()).restart).to.deep.equal([])
    process.env['MCP_HOST_SECRETS'] = OTHER
    expect((await reload()).restart).to.deep.equal(['MCP_HOST_SECRETS'])
    delete process.env['MCP_HOST_SECRETS']
    await edit('mcp.config.ts', "'./state/secrets'", "'./state/others'")
    expect((await reload()).restart).to.include('secrets.file')
    expect(existsSync(join(folder, 'state/others'))).to.equal(false)
  })
})

describe('mcp-host audit with a secrets file', () => {
  it('uses the pseudonym key of the host', async () => {
    const folder = await makeFolder({ 'audit.jsonl': '' })
    const plugins = { 'transport-streamable': {}, audit: { file: './log.jsonl' } }
    await writeFile(join(folder, 'mcp.config.json'), JSON.stringify({ ...PLAIN, plugins }))
    const host = await createHost({ ...PLAIN, plugins } as never, { directory: folder, log: createTestLog() })
    await host.listen()
    await host.close()
    const args = ['audit', 'who', 'ada', '--issuer', 'https://issuer.example', '--config', 'mcp.config.json']
    const keyed = await runCli(args, folder, { MCP_HOST_SECRETS: '' })
    const same = await runCli(args.slice(0, -2), folder, { MCP_HOST_SECRETS: textOf(folder).trim() })
    expect(keyed.stdout).to.match(/[\da-f]{16}/)
    expect(keyed.stdout).to.equal(same.stdout)
  })
})

const PLAIN = {
  server: { name: 'test', version: '1.0.0' },
  http: { port: 0 },
  secrets: { file: FILE },
  toolsets: { all: join(import.meta.dirname, '../fixtures/line-toolset.ts') },
  routes: { '/mcp': { toolsets: 'all' } },
}

/** Waits for a line, then makes each of the files: prints whether it was the first, and what is in the file. */
const RACER = `
const { createSecretsFile, readSecrets } = await import(process.argv[1])
const [folder, rounds] = process.argv.slice(2)
process.stdout.write('ready\\n')
await new Promise(resolve => process.stdin.once('data', resolve))
for (let round = 0; round < Number(rounds); round++) {
  const path = folder + '/' + round + '/secrets'
  const first = await createSecretsFile(path)
  process.stdout.write(JSON.stringify([first, await readSecrets(path, () => undefined)]) + '\\n')
}
process.exit(0)
`

/** How often a process was the first, and all the secrets that any has seen. */
async function raceOf(count: number, folder: string, rounds: number): Promise<[number, string[]]> {
  const module = pathToFileURL(join(import.meta.dirname, '../../core/config/secrets-file.ts')).href
  const args = ['--import', 'tsx', '--input-type=module', '--eval', RACER, module, folder, String(rounds)]
  const cwd = join(import.meta.dirname, '../..')
  const racers = Array.from({ length: count }, () =>
    spawn(process.execPath, args, { cwd, stdio: ['pipe', 'pipe', 'inherit'] }),
  )
  const texts = racers.map(collect)
  await Promise.all(racers.map(({ stdout }) => once(stdout, 'data')))
  const ended = racers.map(racer => once(racer, 'close'))
  for (const { stdin } of racers) stdin.end('go\n')
  await Promise.all(ended)
  const seen = texts.flatMap(({ text }) =>
    text
      .split('\n')
      .filter(line => line.startsWith('['))
      .map(line => JSON.parse(line) as [boolean, string[]]),
  )
  expect(seen).to.have.length(count * rounds)
  return [seen.filter(([first]) => first).length, [...new Set(seen.map(([, secrets]) => secrets.join()))]]
}

function collect({ stdout }: ChildProcess): { text: string } {
  const got = { text: '' }
  stdout?.on('data', chunk => {
    got.text += chunk
  })
  return got
}
