// Tests client IP addresses with examples/deploy/docker/nginx.conf behind a load balancer that appends to
// X-Forwarded-For.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { exchange } from '../support/stream-exchange.ts'
import { type NameServer, startNameServer } from './support/name-server.ts'
import {
  nginxCommand,
  type RunningProxy,
  readExample,
  removeFolders,
  replaced,
  startListening,
  writeNginx,
} from './support/processes.ts'

const BALANCER = '127.0.0.7'
/** As the file has it, to be put in. */
const ITS_ADDRESS = 'set_real_ip_from 10.0.0.10;'
const CALLERS = [1, 2, 3, 4, 5].map(last => `127.0.1.${last}`)

const seen: string[] = []
const running: RunningProxy[] = []
let names: NameServer

before(async function () {
  needsProgram(this, 'nginx', 'apt-get install nginx')
  names = await startNameServer(['127.0.0.1'])
})
afterEach(() => Promise.all(running.splice(0).map(proxy => proxy.stop())))
after(async () => {
  names?.close()
  await stopHosts()
  removeFolders()
})

async function startNginx(text: string, port: number): Promise<void> {
  running.push(await startListening(nginxCommand(writeNginx(text)), port))
}

type Change = readonly [string | RegExp, string]
interface Setup {
  readonly trustProxy: number
  /** In nginx.conf. */
  readonly changes?: readonly Change[]
}

/** A host, nginx before it and a balancer before that: the addresses of the two. */
async function startBoth({ trustProxy, changes = [] }: Setup) {
  const host = await startHost({
    toolsets: { main: [defineTool({ name: 'one', input: { type: 'object' }, handler: () => 'one' })] },
    routes: { '/mcp': { toolsets: 'main' } },
    http: { trustProxy },
    configureSession: ({ ip }) => void seen.push(ip),
  })
  const [inner, outer] = [await freePort(), await freePort()]
  const text = replaced(readExample('deploy/docker/nginx.conf'), [
    ['host:3000', `host:${new URL(host.url).port}`],
    ['resolver 127.0.0.11', `resolver 127.0.0.1:${names.port}`],
    ['listen 8080;', `listen 127.0.0.1:${inner};`],
    ['/dev/stdout', 'mcp.log'],
    ...changes,
  ])
  await startNginx(text, inner)
  const added = 'proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;'
  const location = `proxy_bind ${BALANCER}; proxy_pass http://127.0.0.1:${inner}; proxy_set_header Host $http_host; ${added}`
  await startNginx(`server { listen 127.0.0.1:${outer}; location / { ${location} } }`, outer)
  return { nginx: `http://127.0.0.1:${inner}/mcp`, balancer: `http://127.0.0.1:${outer}/mcp` }
}

/** Who the host takes callers for, one after the other; each writes what it likes. */
async function callersAt(url: string, callers: readonly string[] = CALLERS): Promise<string[]> {
  seen.length = 0
  for (const localAddress of callers) {
    const { headers, body } = modernRequest('tools/call', { name: 'one', arguments: {} })
    const sent = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
    const forged = { 'X-Forwarded-For': '192.0.2.66, 127.0.1.77', 'X-Real-IP': '192.0.2.67' }
    const answer = await exchange(url, {
      method: 'POST',
      headers: { ...(sent as Record<string, string>), ...forged },
      body,
      localAddress,
    })
    expect([answer.status, await answer.text()]).to.satisfy(([status]: [number]) => status === 200)
  }
  return [...seen]
}

/** What README.md says to do; the balancer's address, or its range, is ours. */
const told = (address = BALANCER): readonly Change[] => [
  [/^ {2}# (set_real_ip_from|real_ip_header) /, '  $1 '],
  [ITS_ADDRESS, `set_real_ip_from ${address};`],
]

describe('client IP addresses: examples/deploy/docker/nginx.conf behind a load balancer', () => {
  it('without changes, every client has the address of the load balancer', async () => {
    const all = CALLERS.map(() => BALANCER)
    expect(await callersAt((await startBoth({ trustProxy: 1 })).balancer)).to.deep.equal(all)
    expect(await callersAt((await startBoth({ trustProxy: 2 })).balancer)).to.deep.equal(all)
  })

  it('the two commented lines restore client addresses and ignore forged headers', async () => {
    const { balancer } = await startBoth({ trustProxy: 1, changes: told() })
    expect(await callersAt(balancer)).to.deep.equal(CALLERS)
  })

  it('ignores X-Forwarded-For from clients that bypass the load balancer', async () => {
    const { nginx } = await startBoth({ trustProxy: 1, changes: told() })
    expect(await callersAt(nginx)).to.deep.equal(CALLERS)
  })

  it('restores clients inside the trusted range, unlike real_ip_recursive', async () => {
    const range = told('127.0.0.0/24')
    const { balancer } = await startBoth({ trustProxy: 1, changes: range })
    expect(await callersAt(balancer, ['127.0.0.21', '127.0.0.22'])).to.deep.equal(['127.0.0.21', '127.0.0.22'])
    const recursive: Change = ['real_ip_header X-Forwarded-For;', '$& real_ip_recursive on;']
    const fooled = await startBoth({ trustProxy: 1, changes: [...range, recursive] })
    expect(await callersAt(fooled.balancer, ['127.0.0.21'])).to.deep.equal(['127.0.1.77'])
  })

  it('trustProxy: 2 restores client addresses when nginx appends to the header', async () => {
    const adds: Change = ['X-Forwarded-For $remote_addr', 'X-Forwarded-For $$proxy_add_x_forwarded_for']
    const { balancer } = await startBoth({ trustProxy: 2, changes: [adds] })
    expect(await callersAt(balancer)).to.deep.equal(CALLERS)
  })
})
