// Tests that the host process survives isolated tools that exhaust memory or never stop, and shuts down.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { CORE, type Running, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { isAlive } from '../support/is-alive.ts'
import { modern } from '../support/rpc.ts'

after(stopAll)
after(removeFolders)

const CONFIG = `export default {
  server: { name: 'isolated', version: '1' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: './tools.mjs' },
  routes: { '/': { toolsets: ['all'], stateless: true } },
  plugins: { 'transport-streamable': {} },
}
`
const TOOLS = `import { pbkdf2Sync } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
import { defineTool } from '${CORE}'
const isolate = { memory: '128mb', cpuTime: '60s', processes: 2 }
const hog = (name, handler) => defineTool({ name, isolate, timeout: '60s', handler })
export const echo = defineTool({ name: 'echo', handler: () => 'echoed' })
export const inProcess = defineTool({ name: 'in_process', isolate, handler: () => 'echoed' })
export const lists = hog('lists', () => {
  const all = []
  for (let n = 0; n < 1e7; n++) all.push(new Array(1000).fill(n))
  return all.length
})
const native = (name, bounds, timeout) =>
  defineTool({ name, isolate: { ...isolate, ...bounds }, timeout, handler: () => pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512').length })
const writePid = name => {
  writeFileSync(name + '.written', String(process.pid))
  renameSync(name + '.written', name + '.pid')
}
const writes = (name, handler) => hog(name, () => { writePid(name); return handler() })
export const endless = [
  writes('loops', () => { for (;;); }),
  writes('natively', () => pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512').length),
]
export const natives = [native('computes', { cpuTime: '200ms' }, '60s'), native('stays', {}, '300ms')]
`
const ENDLESS = ['loops', 'natively']
/** Megabytes; a host that does nothing takes 100 to 150. */
const MOST = 1_500

async function serve(): Promise<{ folder: string; running: Running; url: string }> {
  const folder = await makeFolder({ 'mcp.config.mjs': CONFIG, 'tools.mjs': TOOLS })
  const running = startCli(['start'], folder)
  return { folder, running, url: await running.listening() }
}

async function call(url: string, name: string): Promise<string> {
  const { message } = await modern(url, 'tools/call', { name, arguments: {} })
  return message.result.content[0].text
}

/** Megabytes that the process held at most; 0 where the system does not tell. */
function peakOf(pid: number | undefined): number {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024)
  } catch {
    return 0
  }
}

describe('Host process with isolated tools', () => {
  let host: Awaited<ReturnType<typeof serve>>
  before(async () => {
    host = await serve()
  })

  it('survives a tool that allocates all memory and serves other calls', async () => {
    const { running, url } = host
    let hasEnded = false
    let others = 0
    const response = call(url, 'lists').finally(() => {
      hasEnded = true
    })
    for (; !hasEnded; others++) expect(await call(url, 'echo')).to.equal('echoed')
    expect(await response)
      .to.include('lists')
      .and.include('128 MB')
    expect(await call(url, 'in_process')).to.equal('echoed')
    expect(others).to.be.above(0)
    expect(peakOf(running.child.pid)).to.be.below(MOST)
  })

  it('ends native code at the CPU time limit, and shuts down while native code runs in a worker process', async () => {
    const { running, url } = host
    expect(await call(url, 'computes')).to.match(/200 ms.*CPU/)
    // The time limit includes the start of a process.
    expect(await call(url, 'in_process')).to.equal('echoed')
    expect(await call(url, 'stays')).to.match(/^stays: The call took too long/)
    running.child.kill('SIGTERM')
    const { code, stderr, stdout } = await running.ended
    expect(code).to.equal(0)
    expect(stdout).to.match(/^stopped; running requests: 0 finished, 0 cancelled$/m)
    expect(stderr).to.match(/"tool":"computes"/)
  })

  it('leaves no worker process when it is killed, also during an infinite loop and during native code', async () => {
    const { folder, running, url } = await serve()
    const pids = ENDLESS.map(async name => {
      call(url, name).catch(() => undefined)
      const file = join(folder, `${name}.pid`)
      return Number(await eventually(`${name} runs`, () => existsSync(file) && readFileSync(file, 'utf8')))
    })
    const workers = await Promise.all(pids)
    expect(workers.map(isAlive)).to.deep.equal([true, true])
    running.child.kill('SIGKILL')
    try {
      await eventually(
        'the worker processes have ended',
        () => workers.filter(isAlive),
        ({ length }) => length === 0,
      )
    } finally {
      for (const pid of workers) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    }
  })
})
