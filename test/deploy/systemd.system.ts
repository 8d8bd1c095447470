// Tests the unit of examples/deploy/systemd with systemd-analyze, and its system call filter against the calls of the
// host.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { bundledFile } from '../support/compiled.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { modern } from '../support/rpc.ts'
import { needsContainers } from './support/container.ts'
import { readExample, replaced } from './support/processes.ts'

const run = promisify(execFile)
const UNIT = readExample('deploy/systemd/mcp-host.service')
/** Of 10, by `systemd-analyze security`: less is better, and a unit without any of it has 9.6. */
const EXPOSURE = 1.2

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'mcp-host-unit-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** What a program said of a unit, both streams, and its exit code. */
async function told(text: string, ...args: readonly string[]) {
  const file = join(folder, 'mcp-host.service')
  writeFileSync(file, text.replaceAll('/usr/bin/node', process.execPath))
  const { stdout, stderr, code = 0 } = await run('systemd-analyze', [...args, file]).catch(error => error)
  return { said: `${stdout}${stderr}`, code: Number(code) }
}

const verify = (text: string) => told(text, 'verify', '--man=no')

/** What an option was given, last first; a list where it is given more than once. */
const valuesOf = (option: string) =>
  [...UNIT.matchAll(new RegExp(`^${option}=(.*)$`, 'gm'))].map(([, value = '']) => value)

describe('examples/deploy/systemd/mcp-host.service', () => {
  before(function () {
    needsProgram(this, 'systemd-analyze', 'apt-get install systemd')
  })

  it('passes systemd-analyze verify without messages', async () => {
    expect(await verify(UNIT)).to.deep.equal({ said: '', code: 0 })
  })

  for (const [what, from, to, says] of [
    ['an unknown key', 'ProtectSystem=', 'ProtectSytem=', /Unknown .*ProtectSytem/],
    ['an invalid value', 'KillMode=mixed', 'KillMode=mixd', /Failed to parse kill mode/i],
    ['an unknown system call group', '@system-service', '@system-servce', /system-servce/],
    ['a missing program', '/bin/kill', '/bin/no-such-kill', /no-such-kill/],
  ] as const) {
    it(`verification reports ${what}`, async () => {
      expect((await verify(replaced(UNIT, [[from, to]]))).said).to.match(says)
    })
  }

  it(`has an exposure level of at most ${EXPOSURE} of 10`, async () => {
    const judge = (text: string) => told(text, 'security', '--offline=yes', `--threshold=${EXPOSURE * 10}`)
    const { said, code } = await judge(UNIT)
    expect(code, said).to.equal(0)
    expect((await judge(replaced(UNIT, [[/^CapabilityBoundingSet=\n/, '']]))).code).to.not.equal(0)
  })

  it('allows time for a drain and starts the same program as the image', () => {
    const docker = readExample('deploy/docker/Dockerfile')
    const [, command = ''] = /^CMD (\[.*\])$/m.exec(docker) ?? []
    expect(valuesOf('ExecStart')[0]).to.match(/^\/usr\/bin\/node /)
    expect(valuesOf('ExecStart')[0]).to.include((JSON.parse(command) as string[]).slice(1).join(' '))
    expect(Number.parseInt(valuesOf('TimeoutStopSec')[0] ?? '', 10)).to.be.above(30)
  })

  it('names the secrets and settings that mcp.config.ts reads', () => {
    const config = readExample('deploy/mcp.config.ts')
    const settings = readExample('deploy/systemd/mcp-host.env')
    const names = [...settings.matchAll(/^#? ?([A-Z_]+)=/gm)].map(([, name]) => name)
    const credentials = valuesOf('LoadCredential').map(value => value.split(':')[0])
    expect(names).to.include.members(['PUBLIC_URL', 'PORT'])
    for (const name of [...names, ...credentials]) expect(config).to.include(`'${name}'`)
  })
})

/** Every call of the kernel that a filter lets through, its groups taken apart. */
function allowedCalls(): ReadonlySet<string> {
  const members = (group: string): string[] =>
    execFileSync('systemd-analyze', ['syscall-filter', group], { encoding: 'utf8' })
      .split('\n')
      .map(line => line.trim())
      .filter(line => line !== '' && !line.startsWith('#') && line !== group)
      .flatMap(word => (word.startsWith('@') ? members(word) : [word]))
  const [allow = '', deny = ''] = valuesOf('SystemCallFilter')
  const denied = new Set(deny.replace('~', '').split(' ').flatMap(members))
  return new Set(
    allow
      .split(' ')
      .flatMap(members)
      .filter(name => !denied.has(name)),
  )
}

/** Of a host with one tool, and the plugins that ask the system most. */
function hostCommand(folder: string, port: number): readonly string[] {
  const file = join(folder, 'mcp.config.mjs')
  const config = `import { defineTool } from '${pathToFileURL(bundledFile('core/index.ts')).href}'
    export default {
      server: { name: 'traced', version: '1.0.0' }, http: { port: ${port} },
      toolsets: { main: defineTool({ name: 'one', input: { type: 'object' }, handler: () => 'one' }) },
      routes: { '/mcp': { toolsets: 'main' } },
      plugins: { 'transport-streamable': {}, health: {}, metrics: { port: 0 } },
    }`
  writeFileSync(file, config)
  return [process.execPath, bundledFile('cli/bin.ts'), 'start', '--config', file]
}

describe('system access of the host under systemd', () => {
  before(function () {
    needsProgram(this, 'systemd-analyze', 'apt-get install systemd')
    needsProgram(this, 'strace', 'apt-get install strace')
  })

  it('serves with the restricted /proc of the unit', async function () {
    await needsContainers(this)
    const port = await freePort()
    const child = spawn(
      'unshare',
      [
        ...['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c'],
        'mount -t proc -o subset=pid,hidepid=invisible proc /proc && ! test -e /proc/meminfo && exec "$@"',
        'sh',
        ...hostCommand(folder, port),
      ],
      { stdio: 'ignore' },
    )
    const url = `http://127.0.0.1:${port}/mcp`
    const call = () => modern(url, 'tools/call', { name: 'one', arguments: {} }).catch(() => undefined)
    try {
      expect((await eventually('it answers', call))?.status).to.equal(200)
    } finally {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
  })

  it('startup, call, reload and drain use only allowed system calls', async () => {
    const [port, log] = [await freePort(), join(folder, 'calls')]
    const host = hostCommand(folder, port)
    const child = spawn('strace', ['-f', '-qq', '-o', log, ...host], { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', part => {
        said += part
      })
    const ended = once(child, 'exit')
    await eventually(
      'it listens',
      () => said,
      text => /^listening on/m.test(text),
      60_000,
    )
    const traced = Number(readFileSync(log, 'utf8').split(' ', 1)[0])
    expect(
      (await modern(`http://127.0.0.1:${port}/mcp`, 'tools/call', { name: 'one', arguments: {} })).status,
    ).to.equal(200)
    process.kill(traced, 'SIGHUP')
    await eventually(
      'it reloads',
      () => said,
      text => /reloaded/i.test(text),
      30_000,
    )
    process.kill(traced, 'SIGTERM')
    expect(await ended, said).to.deep.equal([0, null])

    const asked = new Set([...readFileSync(log, 'utf8').matchAll(/^\d+ +(\w+)\(/gm)].map(([, name = '']) => name))
    const allowed = allowedCalls()
    expect(asked.size).to.be.above(30)
    expect([...asked].filter(name => !allowed.has(name))).to.deep.equal([])
  })
})
