// Stored data of a task: call arguments and owner, but no credentials of the request, in Redis and in SQLite.
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { META } from '../../core/transport.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { modern } from '../support/rpc.ts'
import { startHost, type TestConfig } from '../support/start-host.ts'
import { storeFile } from '../support/test-store.ts'

const PLANTED = 'planted-credential-5f2c'
const SECRETS = ['a secret for tests that is long enough to be one']
const HEADERS = {
  Authorization: `Bearer ${PLANTED}-1`,
  Cookie: `session=${PLANTED}-2`,
  'X-Api-Key': `${PLANTED}-3`,
  'X-Plain': `${PLANTED}-4`,
  'X-User': 'ann',
}

/** Everything that is in it. */
function dumpOf(redis: RedisServer): string {
  const read: Readonly<Record<string, (key: string) => string[]>> = {
    string: key => redis.cli('GET', key),
    hash: key => redis.cli('HGETALL', key),
    zset: key => redis.cli('ZRANGE', key, '0', '-1'),
    set: key => redis.cli('SMEMBERS', key),
    stream: key => redis.cli('XRANGE', key, '-', '+'),
  }
  const keys = redis.cli('KEYS', '*')
  return keys.flatMap(key => [key, ...(read[redis.cli('TYPE', key)[0] ?? '']?.(key) ?? [])]).join('\n')
}

const bytesOf = (file: string) =>
  readdirSync(dirname(file))
    .map(name => readFileSync(join(dirname(file), name), 'latin1'))
    .join('\n')

async function runTask(config: Partial<TestConfig>, dump: () => string) {
  const gate = createGate()
  const wait = defineTool({
    name: 'wait',
    task: 'required',
    input: { type: 'object', properties: { word: { type: 'string' } } },
    async handler({ word }, ctx) {
      await gate.opened
      return `${word} for ${ctx.user?.subject}, headers: ${Object.keys(ctx.headers).length}`
    },
  })
  const { url } = await startHost({
    ...config,
    secrets: SECRETS,
    toolsets: { wait: [wait] },
    routes: { '/': { toolsets: 'wait', stateless: true } },
    plugins: {
      'transport-streamable': {},
      who: identifyByHeader(),
      tasks: { pollInterval: '50ms' },
      ...config.plugins,
    },
  } as TestConfig)
  const meta = { [META.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }
  const ask = async (method: string, params: Record<string, unknown>) => {
    const name = String(params['taskId'] ?? params['name'])
    return (await modern(url, method, params, { meta, headers: { ...HEADERS, 'Mcp-Name': name } })).message.result
  }
  const { taskId } = await ask('tools/call', { name: 'wait', arguments: { word: 'the-argument-91' } })
  const running = dump()
  gate.open()
  const over = await eventually(
    'the task is over',
    () => ask('tasks/get', { taskId }),
    task => task.status === 'completed',
  )
  return { running, over: dump(), said: over.result.content[0].text }
}

function expectNone({ running, over, said }: Awaited<ReturnType<typeof runTask>>) {
  expect(said).to.equal('the-argument-91 for ann, headers: 0')
  for (const text of [running, over]) {
    expect(text).to.include('the-argument-91').and.include('ann')
    expect(text).to.not.include(PLANTED)
  }
  expect(over).to.include('the-argument-91 for ann')
}

describe('Credentials in task stores', () => {
  after(stopHostsAndRedis)

  it('are not stored in Redis', async function () {
    needsRedis(this)
    const redis = await startRedis()
    const config = { redis: { url: redis.url }, plugins: { 'cluster-redis': {} } }
    expectNone(await runTask(config as Partial<TestConfig>, () => dumpOf(redis)))
  })

  if (isBuiltin('node:sqlite')) {
    it('are not stored in a SQLite file', async () => {
      const file = storeFile()
      const config = { plugins: { 'store-sqlite': { file } } }
      expectNone(await runTask(config as Partial<TestConfig>, () => bytesOf(file)))
    })
  }
})
