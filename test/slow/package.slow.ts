// Tests the packed package in an empty project (test/slow/consumer): plain Node.js, type declarations and entry points.
// Builds and installs: `npx mocha 'test/slow/*.slow.ts'`.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { PACKAGE_ENV as env, packPackage } from '../support/packed.ts'
import { examplesOf } from '../support/page-examples.ts'
import { modern } from '../support/rpc.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

let folder: string
let tarball: string
const running = new Set<ChildProcess>()

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-package-'))
  tarball = basename(await packPackage(folder))
  await cp(join(ROOT, 'test/slow/consumer'), folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  await mkdir(join(folder, 'esm/page'))
  for (const { file, text } of examplesOf('testing.md')) await writeFile(join(folder, 'esm/page', file), text)
  // A project in TypeScript for Node has Node's types; ours need nothing else.
  const wanted = [`./${tarball}`, '@types/node@20']
  await run('npm', ['install', '--no-audit', '--no-fund', ...wanted], { cwd: folder, env })
})

after(async () => {
  for (const child of running) if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

/** Starts a program in a process group of its own; resolves with the address that it prints. */
async function serve(command: string, args: string[], cwd: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  for await (const line of createInterface(child.stdout)) {
    const [, url] = /^listening on (http:\S+)$/.exec(line) ?? []
    if (url !== undefined) return { child, url }
  }
  throw new Error(`${command} ${args.join(' ')} ended before it listened`)
}

const MOUNTED = `import Koa from 'koa'
import { definePlugin } from 'mcp-host/plugin'

const app = new Koa()
app.use(async (ctx, next) => {
  ctx.body = ctx.path
  await next()
})

export const mounted = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    host.mount('/app', app)
    host.onRequest(async (ctx, next) => {
      const path: string = ctx.path
      // @ts-expect-error: a context has a type, and paths are texts
      const wrong: number = ctx.path
      ctx.set('X-Path', path + wrong)
      await next()
    })
  },
})
`

async function expectRepeats(url: string) {
  const { message } = await modern(url, 'tools/call', { name: 'repeat', arguments: { text: 'ab', times: 2 } })
  expect(message.result.content).to.deep.equal([{ type: 'text', text: 'abab!' }])
}

describe('published package', () => {
  it('contains the compiled host, schema and docs, without tests, benchmarks and sources', async () => {
    const { stdout } = await run('tar', ['-tzf', join(folder, tarball)])
    const files = stdout
      .trim()
      .split('\n')
      .map(name => name.replace('package/', ''))
    expect(files).to.include.members([
      'package.json',
      'config.schema.json',
      'dist/cli/bin.js',
      'dist/core/index.d.ts',
      'dist/core/embed.js',
      'docs/dependencies.md',
      'templates/project/gitignore',
      'LICENSE',
    ])
    const unexpected = files.filter(name =>
      /^(?:test|bench|core|plugins|cli|client|coverage|create)\/|\.map$|^examples\/.*\.json$|^dist\/cli\/.*\.d\.ts$/.test(
        name,
      ),
    )
    expect(unexpected).to.deep.equal([])
  })

  it('installs no optional packages', async () => {
    const { peerDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const names = Object.keys(peerDependencies).filter(name => name !== '@types/node')
    expect(names).to.have.length.above(5)
    expect(names.filter(name => existsSync(join(folder, 'node_modules', name)))).to.deep.equal([])
  })

  for (const config of ['esm/mcp.config.mjs', 'esm/mcp.config.json', 'esm/mcp.config.ts', 'plain/mcp.config.ts']) {
    it(`npx mcp-host start serves ${config} and exits on SIGTERM`, async () => {
      const { child, url } = await serve('npx', ['--no', 'mcp-host', 'start', '--config', config], folder)
      await expectRepeats(url)
      const ended = once(child, 'exit')
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
      await ended
      // npx is gone before the host, which drains; one that did not end would be waited for in vain.
      const answers = () =>
        fetch(url).then(
          () => true,
          () => false,
        )
      await eventually('the host has ended', async () => !(await answers()))
    })
  }

  it('a program embeds a host through mcp-host/host', async () => {
    const { child, url } = await serve(process.execPath, ['--import', 'tsx', 'embed.ts'], join(folder, 'esm'))
    await expectRepeats(url)
    const ended = once(child, 'exit')
    child.stdin?.end()
    expect(await ended).to.deep.equal([0, null])
  })

  it('plugins of other packages import its entry points', async () => {
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'plugins.ts'], { cwd: join(folder, 'esm'), env })
    expect(stdout.trim()).to.equal('true')
  })

  it('a program calls a server through mcp-host/client', async () => {
    const { child, url } = await serve(process.execPath, ['--import', 'tsx', 'embed.ts'], join(folder, 'esm'))
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'call.ts', url], {
      cwd: join(folder, 'esm'),
      env,
    })
    // The body has no type, and the server is open to everybody.
    expect(stdout.trim().split('\n')).to.deep.equal(['415 false', 'invalid_options'])
    child.stdin?.end()
    await once(child, 'exit')
  })

  it('compiles its declarations in strict mode with plain tsc and library check, next to a Koa application', async () => {
    await writeFile(join(folder, 'esm/mounted.ts'), MOUNTED)
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout } = await run(process.execPath, [tsc, '-p', folder], { env }).catch(({ stdout }) => ({ stdout }))
    expect(stdout).to.equal('')
  })
})
