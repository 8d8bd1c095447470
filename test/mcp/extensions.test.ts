// Tests protocol extensions written by a plugin: methods, result types, header rules and subscriptions/listen filters.
import { expect } from 'chai'
import { defineTool, HostError } from '../../core/index.ts'
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import { type Extension, isObject } from '../../core/plugin.ts'
import { MAX_LISTENS_PER_CALLER, META } from '../../core/transport.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { eventually } from '../support/eventually.ts'
import { modern, modernRequest, type RpcOptions } from '../support/rpc.ts'
import { initialize, nextMessage, openSession, postOpen, readRest } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const ID = 'com.example/jobs'
const SETTINGS = { most: 3 }
const CAPABILITIES = { extensions: { [ID]: { level: 2 } } }
const DECLARED: RpcOptions = { meta: { [META.clientCapabilities]: CAPABILITIES } }
const MISSING = { requiredCapabilities: { extensions: { [ID]: {} } } }

/** Opens a subscription, as a client that declares the extension. */
function listen(url: string, notifications: object) {
  const { headers, body } = modernRequest('subscriptions/listen', { notifications }, { ...DECLARED, id: 'sub' })
  return postOpen(url, body, headers)
}

/** Calls of the tool `slow` become jobs, whose client asks for them by `jobs/get`, or hears of their end. */
function addJobs(host: InternalHost) {
  const done = new Set<string>()
  const listeners = new Map<string, Set<() => void>>()
  let last = 0
  const jobs = host.extension(ID, {
    settings: SETTINGS,
    methods: {
      'jobs/get': ({ params }) => ({ jobId: params['jobId'], done: done.has(String(params['jobId'])) }),
      'jobs/finish': ({ params }) => {
        const id = String(params['jobId'])
        done.add(id)
        for (const tell of listeners.get(id) ?? []) tell()
        return { listeners: listeners.get(id)?.size ?? 0 }
      },
    },
    nameHeaders: { 'jobs/get': 'jobId' },
    results: { 'tools/call': ['job'] },
    listenFilters: {
      async jobIds(wanted) {
        if (!Array.isArray(wanted)) throw new HostError('invalidParams', { detail: '`jobIds` must be a list' })
        const known = wanted.map(String).filter(id => Number(id) <= last)
        if (known.length === 0) return undefined
        return {
          acknowledged: known,
          begin(notify) {
            const ends = known.map(id => {
              const tell = () => notify('notifications/jobs', { jobId: id, _meta: { by: 'jobs' } })
              const told = listeners.get(id) ?? new Set()
              listeners.set(id, told.add(tell))
              return () => told.delete(tell)
            })
            return () => {
              for (const end of ends) end()
            }
          },
        }
      },
    },
  })
  host.onCall((call, next) => {
    if (call.method !== 'tools/call' || call.params['name'] !== 'slow' || !call.modern) return next()
    const level = jobs.settingsOf(call)?.['level']
    return level === undefined ? next() : Promise.resolve(jobs.result('job', { jobId: String(++last), level }))
  })
  host.toolset([
    defineTool({ name: 'slow', handler: (_args, ctx) => `declared: ${jobs.settingsOf(ctx) !== undefined}` }),
    defineTool({ name: 'always', handler: () => jobs.result('job', { jobId: '0' }) }),
    defineTool({ name: 'wrong', handler: () => jobs.result('other', {}) }),
  ])
}

describe('Plugin-defined protocol extension', () => {
  let url: string
  before(async () => {
    const off = { toolsets: 'all', plugins: { jobs: false as const } }
    const routes = { '/': { toolsets: 'all' }, '/off': off }
    ;({ url } = await startHost(withPlugins({ jobs: plugin(addJobs) }, { routes })))
  })
  after(stopHosts)

  const startJob = async () => (await modern(url, 'tools/call', { name: 'slow' }, DECLARED)).message.result
  const getJob = (jobId: string, name: string | null = jobId, options = DECLARED) =>
    modern(url, 'jobs/get', { jobId }, { ...options, headers: { 'Mcp-Name': name ?? undefined } })

  it('is declared in server/discover and initialize on routes of the plugin only', async () => {
    const { result } = (await modern(url, 'server/discover')).message
    expect(result.capabilities).to.deep.include({ extensions: { [ID]: SETTINGS } })
    expect((await initialize(url)).message.result.capabilities).to.deep.include({ extensions: { [ID]: SETTINGS } })
    const elsewhere = (await modern(`${url}/off`, 'server/discover')).message.result
    expect(elsewhere.capabilities).not.to.have.property('extensions')
  })

  it('returns its own result type next to standard result fields', async () => {
    const result = await startJob()
    expect(result).to.include({ resultType: 'job', level: 2 }).and.to.have.property('jobId')
    expect(result._meta).to.have.property(META.serverInfo)
    const { message } = await modern(url, 'tools/call', { name: 'always' }, DECLARED)
    expect(message.result).to.include({ resultType: 'job', jobId: '0' })
  })

  it('responds -32021 with the missing extension if the client does not declare it', async () => {
    const plain = (await modern(url, 'tools/call', { name: 'slow' })).message.result
    expect(plain.content).to.deep.equal([{ type: 'text', text: 'declared: false' }])
    for (const extensions of [{}, { [ID]: true }, { [ID]: null }, 'all of them', null]) {
      const meta = { [META.clientCapabilities]: { extensions } }
      const { status, message } = await modern(url, 'tools/call', { name: 'always' }, { meta })
      expect([status, message.error.code], JSON.stringify(extensions)).to.deep.equal([400, -32021])
      expect(message.error.data).to.deep.equal(MISSING)
    }
  })

  it('responds -32021 to older protocol versions, which have no result types', async () => {
    const session = await openSession(url, { capabilities: CAPABILITIES })
    const slow = (await session.request('tools/call', { name: 'slow' })).message.result
    expect(slow).to.deep.equal({ content: [{ type: 'text', text: 'declared: true' }] })
    const { status, message } = await session.request('tools/call', { name: 'always' })
    expect([status, message.error.code]).to.deep.equal([200, -32021])
  })

  it('fails for a result type that it did not declare', async () => {
    const { status, message } = await modern(url, 'tools/call', { name: 'wrong' }, DECLARED)
    expect([status, message.error.code]).to.deep.equal([200, -32603])
  })

  it('serves its methods to clients that declare it per request or in initialize', async () => {
    const { jobId } = await startJob()
    expect((await getJob(jobId)).message.result).to.include({ resultType: 'complete', jobId, done: false })
    const refused = await getJob(jobId, jobId, {})
    expect([refused.status, refused.message.error.code]).to.deep.equal([400, -32021])
    expect(refused.message.error.data).to.deep.equal(MISSING)
    const declaring = await openSession(url, { capabilities: CAPABILITIES })
    expect((await declaring.request('jobs/get', { jobId })).message.result).to.deep.equal({ jobId, done: false })
    const silent = await openSession(url)
    expect((await silent.request('jobs/get', { jobId })).message.error.code).to.equal(-32021)
    const elsewhere = await modern(`${url}/off`, 'jobs/get', { jobId }, DECLARED)
    expect([elsewhere.status, elsewhere.message.error.code]).to.deep.equal([404, -32601])
  })

  it('validates the Mcp-Name header of its methods against the named parameter', async () => {
    expect((await getJob('1', '1')).status).to.equal(200)
    expect((await getJob('a\u00e9', '=?base64?YcOp?=')).status).to.equal(200)
    for (const name of ['2', null]) {
      const { status, message } = await getJob('1', name)
      expect([status, message.error.code], `${name}`).to.deep.equal([400, -32020])
    }
    const free = await modern(url, 'jobs/finish', { jobId: '0' }, DECLARED)
    expect(free.status, 'a method without a rule').to.equal(200)
  })

  it('notifies subscribers of its filter until the stream ends', async () => {
    const { jobId } = await startJob()
    const asked = { jobIds: [jobId, '999'], toolsListChanged: true }
    const stream = await listen(url, asked)
    const acknowledged = await nextMessage(stream)
    expect(acknowledged.params.notifications).to.deep.equal({ jobIds: [jobId], toolsListChanged: true })
    const finished = await modern(url, 'jobs/finish', { jobId }, DECLARED)
    expect(finished.message.result.listeners).to.equal(1)
    const _meta = { by: 'jobs', [META.subscriptionId]: 'sub' }
    expect(await nextMessage(stream)).to.deep.include({ method: 'notifications/jobs', params: { jobId, _meta } })
    stream.drop()
    const listeners = async () => (await modern(url, 'jobs/finish', { jobId }, DECLARED)).message.result.listeners
    await eventually('no listener left', listeners, count => count === 0)
  })

  it('rejects its filter if undeclared by the client or malformed', async () => {
    const refused = await modern(url, 'subscriptions/listen', { notifications: { jobIds: ['1'] } })
    expect([refused.status, refused.message.error.code]).to.deep.equal([400, -32021])
    expect(refused.message.error.data).to.deep.equal(MISSING)
    const malformed = await modern(url, 'subscriptions/listen', { notifications: { jobIds: 1 } }, DECLARED)
    expect(malformed.message.error.code).to.equal(-32602)
  })

  it('acknowledges only requested and accepted filters', async () => {
    const stream = await listen(url, { jobIds: ['999'] })
    expect((await nextMessage(stream)).params.notifications).to.deep.equal({})
    stream.drop()
  })

  it('ends its subscriptions when the host closes', async () => {
    let ended = 0
    const counts = plugin(host => {
      host.extension(ID, {
        clientMustDeclare: false,
        listenFilters: { all: () => ({ acknowledged: true, begin: () => () => void ended++ }) },
      })
    })
    const { url: own, host } = await startHost(withPlugins({ counts }))
    const stream = await listen(own, { all: true })
    expect((await nextMessage(stream)).params.notifications).to.deep.equal({ all: true })
    await host.close()
    expect((await readRest(stream)).map(({ result }) => isObject(result))).to.deep.equal([true])
    expect(ended).to.equal(1)
  })
})

describe('Failed subscription acknowledgement', () => {
  after(stopHosts)

  it('releases the subscription slot', async () => {
    let acknowledged: unknown = 1n
    const failing = plugin(host => {
      const listenFilters = { all: () => ({ acknowledged, begin: () => () => undefined }) }
      host.extension(ID, { clientMustDeclare: false, listenFilters })
    })
    const { url } = await startHost(withPlugins({ failing }))
    for (let count = 0; count < MAX_LISTENS_PER_CALLER; count++) {
      const { message } = await modern(url, 'subscriptions/listen', { notifications: { all: true } })
      expect(message.error.code).to.equal(-32603)
    }
    acknowledged = true
    const stream = await listen(url, { all: true })
    expect((await nextMessage(stream)).params?.notifications).to.deep.equal({ all: true })
    stream.drop()
  })
})

describe('Invalid protocol extension', () => {
  const adding = (id: string, extension: Extension = {}) => plugin(host => void host.extension(id, extension))

  const wrong: Array<[string, Extension, string]> = [
    ['jobs', {}, 'a reversed domain name'],
    ['com.example/', {}, 'a reversed domain name'],
    [ID, { nameHeaders: { 'tools/call': 'name' } }, '"tools/call", which is not one of its methods'],
    [ID, { results: { 'tools/call': ['complete'] } }, 'the result "complete" of tools/call'],
    [ID, { listenFilters: { toolsListChanged: () => undefined } }, 'the filter "toolsListChanged"'],
    [ID, { methods: { 'tools/call': () => ({}) } }, 'reserved for the host'],
  ]
  for (const [id, extension, words] of wrong) {
    it(`stops startup: ${id} with ${Object.keys(extension).join() || 'nothing'}, ${words}`, async () => {
      const own = words === 'reserved for the host'
      await expectStopped(withPlugins({ wrong: adding(id, extension) }), words, undefined, own ? 1 : 2)
    })
  }

  it('stops startup if two plugins add the same id or result type', async () => {
    const twice = { one: adding(ID), other: adding(ID) }
    await expectStopped(withPlugins(twice), /plugins\.other.*"com\.example\/jobs": plugins\.one/)
    const types: Extension = { results: { 'tools/call': ['job'] } }
    const clash = { one: adding(ID, types), other: adding('com.example/works', types) }
    await expectStopped(withPlugins(clash), 'the result "job" of tools/call is already used on this route')
  })

  it('is registered separately for each set of plugin options', async () => {
    const jobs = definePlugin<{ most?: number }>({
      options: { type: 'object', additionalProperties: false, properties: { most: { type: 'integer', default: 1 } } },
      setup: (host, { most }) => void host.extension(ID, { settings: { most } }),
    })
    const routes = { '/': { toolsets: 'all' }, '/b': { toolsets: 'all', plugins: { jobs: { most: 2 } } } }
    const { url } = await startHost(withPlugins({ jobs: jobs() }, { routes }))
    const settings = async (path: string) =>
      (await modern(url + path, 'server/discover')).message.result.capabilities.extensions
    expect(await settings('')).to.deep.equal({ [ID]: { most: 1 } })
    expect(await settings('/b')).to.deep.equal({ [ID]: { most: 2 } })
    await stopHosts()
  })
})
