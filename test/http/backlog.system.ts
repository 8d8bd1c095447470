// Tests `http.backlog`: connections that wait for acceptance while the event loop is blocked.
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { platform } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { requestBytes } from '../support/raw-http.ts'
import { modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const MANY = 2_000

/** What the system keeps at most, whatever it is asked for. */
function systemCap(): number {
  if (platform() !== 'linux') return 128
  return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
}

const program = fileURLToPath(new URL('../support/open-many.mjs', import.meta.url))
const argv = (url: string, count: number, request = '') => [program, url, String(count), request]

const start = (http: { backlog?: number } = {}) =>
  startHost({
    toolsets: { all: [defineTool({ name: 'here', handler: () => 'here' })] },
    routes: { '/': { toolsets: 'all', stateless: true } },
    http,
  })

/** How many of `count` connections at once are made while nobody accepts any. */
function connectUnaccepted(url: string, count: number): number {
  const { stdout, stderr } = spawnSync(process.execPath, argv(url, count), { encoding: 'utf8' })
  expect(stderr).to.equal('')
  return JSON.parse(stdout).connected
}

describe('http.backlog', () => {
  afterEach(stopHosts)

  it(`queues ${MANY} connections while the event loop is blocked`, async () => {
    const { url } = await start()
    expect(connectUnaccepted(url, MANY)).to.equal(Math.min(MANY, systemCap() + 1))
  })

  it('uses the configured value', async () => {
    const { url } = await start({ backlog: 10 })
    // Linux keeps one more than it is told, and others half as many.
    expect(connectUnaccepted(url, 30)).to.be.within(10, 16)
  })

  it(`serves ${MANY} requests on separate queued connections`, async () => {
    const { url } = await start()
    const { headers, body } = modernRequest('tools/call', { name: 'here' })
    const request = requestBytes(url, body, { headers }).toString('latin1')
    const { stdout } = await promisify(execFile)(process.execPath, argv(url, MANY, request))
    expect(JSON.parse(stdout)).to.deep.equal({ connected: MANY, answered: MANY, failed: 0 })
  })
})
