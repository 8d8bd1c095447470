// Tests the image of examples/deploy/docker: executes its Dockerfile and runs it as a container without a Docker
// engine. `npx mocha 'test/slow/*.slow.ts'`.
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { type Container, needsContainers, startContainer, stopContainers } from '../deploy/support/container.ts'
import { readDockerfile } from '../deploy/support/dockerfile.ts'
import { addBase, buildImage, type Image } from '../deploy/support/image.ts'
import { type NameServer, startNameServer } from '../deploy/support/name-server.ts'
import {
  nginxCommand,
  type RunningProxy,
  readExample,
  removeFolders,
  replaced,
  startListening,
  writeNginx,
} from '../deploy/support/processes.ts'
import { makeProject } from '../deploy/support/project.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { PACKAGE_ENV } from '../support/packed.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import { modern } from '../support/rpc.ts'
import { openSession, type SessionClient } from '../support/session-client.ts'

const SECRETS = 'a-secret-for-tests-that-is-long-enough'
/** Resolves when the check of an image succeeds. Each check starts a process, so the first one waits until the host listens. */
async function healthy(container: Container, check: readonly string[]): Promise<void> {
  await eventually('the host listens', container.said, text => /^listening on/m.test(text))
  await eventually(
    'the image says that it is healthy',
    () => container.exec(check),
    ({ code }) => code === 0,
  )
}

let outer: string
let image: Image
let mounted: ReadonlyMap<string, string>

before(async function () {
  this.timeout(400_000)
  await needsContainers(this)
  outer = await mkdtemp(join(tmpdir(), 'mcp-host-image-'))
  const { folder, tarball } = await makeProject(outer)
  const stages = readDockerfile(readExample('deploy/docker/Dockerfile'))
  const build = { context: folder, folder: join(outer, 'stages'), registry: [tarball], env: PACKAGE_ENV }
  image = buildImage(stages, build)
  mounted = addBase(image).mounted
})

after(async () => {
  await stopContainers()
  if (outer !== undefined) await rm(outer, { recursive: true, force: true })
})

describe('container image of examples/deploy/docker', () => {
  it('contains the server files and no secrets, tests, compilers or sources', () => {
    const has = (path: string) => existsSync(join(image.root, 'app', path))
    expect(
      ['mcp.config.ts', 'tools/days_between.ts', 'package.json', 'node_modules/mcp-host'].filter(has),
    ).to.have.length(4)
    const unwanted = [
      '.env',
      '.env.example',
      'test',
      'Dockerfile',
      'compose.yaml',
      'README.md',
      'nginx.conf',
      'env.example',
    ]
    const packages = ['typescript', '@biomejs', 'mocha'].map(name => `node_modules/${name}`)
    expect([...unwanted, ...packages].filter(has)).to.deep.equal([])
  })

  it('runs read-only as user 1000 without privileges: health, reload and shutdown by signals', async () => {
    const port = await freePort()
    const env = { PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}`, MCP_HOST_SECRETS: SECRETS }
    const { health } = image.stage
    const container = await startContainer(image, mounted, env)
    await healthy(container, health)

    const status = readFileSync(`/proc/${container.pid}/status`, 'utf8')
    expect(status).to.match(/^Uid:\s+1000\s+1000\s+1000\s+1000$/m)
    expect(status).to.match(/^CapEff:\s+0+$/m)
    const write = (place: string) => container.exec(['node', '-e', `fs.writeFileSync('${place}', '')`])
    for (const place of ['/app/written', '/tmp/written', '/home/node/written']) {
      expect((await write(place)).said).to.match(/EROFS/)
    }

    const args = { name: 'days_between', arguments: { from: '2026-01-01', to: '2026-12-24' } }
    const { message } = await modern(`http://127.0.0.1:${port}/mcp`, 'tools/call', args)
    expect(message.result.content[0].text).to.include('357')

    container.signal('SIGHUP')
    await eventually('the reload is logged', () => /"msg":"Reloaded|Not reloaded/.test(container.said()))
    container.signal('SIGTERM')
    expect(await container.ended, container.said()).to.equal(0)
    expect(container.said()).to.include('stopped; running requests: 0 finished, 0 cancelled')
  })

  it('health check fails when the host does not listen', async () => {
    const env = { PORT: String(await freePort()), MCP_HOST_SECRETS: SECRETS }
    const container = await startContainer(image, mounted, env)
    await healthy(container, image.stage.health)
    const other = image.stage.health.map(word => word.replace('process.env.PORT', '1'))
    expect((await container.exec(other)).code).to.equal(1)
    const missing = image.stage.health.map(word => word.replace('/livez', '/no-such-page'))
    expect((await container.exec(missing)).code).to.equal(1)
    container.signal('SIGTERM')
    expect(await container.ended).to.equal(0)
  })

  it('starts on a read-only file system with a user without name and home', async () => {
    const bare = { TSX_DISABLE_CACHE: undefined, HOME: undefined }
    const env = { PORT: String(await freePort()), MCP_HOST_SECRETS: SECRETS, ...bare }
    const strange = { ...image, stage: { ...image.stage, user: '54321:54321' } }
    const container = await startContainer(strange, mounted, env)
    const question = ['node', '-e', 'try { os.homedir() } catch { fs.mkdirSync("/tmp/tsx-54321") }']
    expect((await container.exec(question)).said).to.include("mkdir '/tmp/tsx-54321'")
    await healthy(container, image.stage.health)
    container.signal('SIGTERM')
    expect(await container.ended, container.said()).to.equal(0)
  })

  it('startup fails without secrets when sessions are persistent', async () => {
    const env = { PORT: String(await freePort()), REDIS_URL: 'redis://127.0.0.1:1' }
    const container = await startContainer(image, mounted, env)
    expect(await container.ended, container.said()).to.equal(2)
    expect(container.said()).to.include('MCP_HOST_SECRETS').and.include('openssl rand')
  })
})

describe('compose.yaml of examples/deploy/docker, its commands run one by one', () => {
  const compose = parse(readExample('deploy/docker/compose.yaml'))
  const ADDRESSES = ['127.0.0.2', '127.0.0.3']
  /** Of every node, as in the composition, each at an address of its own. */
  let port: number
  let nodes: Container[]
  let start: (address: string) => Promise<Container>
  let url: string
  let names: NameServer
  let proxy: RunningProxy

  /** Ready, as the composition's own check says; that check asks 127.0.0.1, which is another node here. */
  async function startReady(env: Readonly<Record<string, string>> & { readonly BIND_ADDRESS: string }) {
    const node = await startContainer(image, mounted, env)
    const words: string[] = compose.services.host.healthcheck.test.slice(1)
    const check = words.map(word => word.replaceAll('$$', '$').replace('127.0.0.1', env.BIND_ADDRESS))
    await healthy(node, check)
    return node
  }

  before(async function () {
    needsRedis(this)
    needsProgram(this, 'nginx', 'apt-get install nginx')
    const [, ...args] = compose.services.redis.command.map((word: string) => word.replace(/^\$\{.*\}$/, 'a-password'))
    const redis = await startRedis({ more: args })
    port = await freePort()
    const front = await freePort()
    url = `http://127.0.0.1:${front}/mcp`
    const shared = { PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${front}`, MCP_HOST_SECRETS: SECRETS }
    const env = { ...shared, REDIS_URL: redis.url, REDIS_PASSWORD: 'a-password' }
    start = BIND_ADDRESS => startReady({ ...env, BIND_ADDRESS })
    nodes = await Promise.all(ADDRESSES.map(start))
    names = await startNameServer(ADDRESSES)
    const text = replaced(readExample('deploy/docker/nginx.conf'), [
      ['host:3000', `host:${port}`],
      ['resolver 127.0.0.11', `resolver 127.0.0.1:${names.port}`],
      ['listen 8080;', `listen 127.0.0.1:${front};`],
      ['/dev/stdout', 'mcp.log'],
    ])
    proxy = await startListening(nginxCommand(writeNginx(text)), front)
  })
  after(async () => {
    names?.close()
    await proxy?.stop()
    removeFolders()
    await stopRedis()
  })

  const call = async (session: SessionClient) =>
    (await session.request('tools/call', { name: 'days_between', arguments: { from: '2026-01-01', to: '2026-12-24' } }))
      .status

  it('serves a session at both nodes and drains one without losing a call', async () => {
    const session = await openSession(url)
    const statuses = new Set<number>()
    for (let count = 0; count < 20; count++) statuses.add(await call(session))
    nodes[0]?.signal('SIGTERM')
    for (let count = 0; count < 20; count++) statuses.add(await call(session))
    expect([...statuses]).to.deep.equal([200])
    expect(await nodes[0]?.ended).to.equal(0)
    const log = nodes.map(node => node.said()).join('')
    expect(log).to.not.match(/"level":[56]0/)
  })

  it('nginx finds a replica with a new IP address through DNS', async () => {
    const session = await openSession(url)
    await start('127.0.0.4')
    names.give(['127.0.0.4'])
    const before = names.asked
    await eventually(
      'the name is looked up again',
      async () => [await call(session), names.asked > before],
      ([, again]) => again,
    )
    nodes[1]?.signal('SIGTERM')
    expect(await nodes[1]?.ended).to.equal(0)
    for (let count = 0; count < 10; count++) expect(await call(session)).to.equal(200)
  })
})
