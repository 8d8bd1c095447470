// Tests the messages for unsupported or invalid extension methods, filters and results.
import { expect } from 'chai'
import { META } from '../../core/transport.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { type StartedHost, startHost, stopHosts } from '../support/start-host.ts'

const ID = 'com.example/jobs'
const DECLARED = { meta: { [META.clientCapabilities]: { extensions: { [ID]: {} } } } }

describe('Extension error messages', () => {
  let host: StartedHost
  before(async () => {
    const jobs = plugin(own => {
      const added = own.extension(ID, {
        methods: {
          'jobs/get': () => ({ done: true }),
          'jobs/text': () => 'a text' as unknown as object,
          'jobs/nothing': () => undefined as unknown as object,
          'jobs/hand': () => ({ resultType: 'job', jobId: '1' }),
          'jobs/made': () => added.result('job', { jobId: '1' }),
        },
        results: { 'jobs/made': ['job'] },
        listenFilters: { jobIds: () => undefined },
      })
      own.onCall((call, next) => (call.params['odd'] === true ? Promise.resolve({ resultType: 'odd' }) : next()))
    })
    host = await startHost(withPlugins({ jobs }))
  })
  after(stopHosts)

  const said = async (...given: Parameters<typeof modern>) => (await modern(...given)).message.error.message as string

  it('name the required extension for a method, without protocol versions', async () => {
    expect(await said(host.url, 'jobs/get')).to.match(/jobs\/get.*com\.example\/jobs$/)
    const session = await openSession(host.url)
    const { message } = await session.request('jobs/get')
    expect(message.error.message).to.not.include('revision')
  })

  it('name the filter', async () => {
    const message = await said(host.url, 'subscriptions/listen', { notifications: { jobIds: [] } })
    expect(message).to.match(/"jobIds".*subscriptions\/listen/)
  })

  it('name the protocol version requirement of a result type', async () => {
    const session = await openSession(host.url, { capabilities: { extensions: { [ID]: {} } } })
    const { message } = await session.request('jobs/made')
    expect(message.error.message)
      .to.include('the result "job" is for clients')
      .and.to.include('in a protocol version without a handshake')
  })

  for (const [method, found] of [
    ['jobs/text', 'a string'],
    ['jobs/nothing', 'undefined'],
  ] as const) {
    it(`name ${method} if its result is not an object`, async () => {
      const { message } = await modern(host.url, method, {}, DECLARED)
      expect(message.error.code).to.equal(-32603)
      const line = host.log.find(one => one['method'] === method && one.level === 'error')
      expect(String(line?.['err'])).to.include('TypeError').and.include(method).and.include(found)
    })
  }

  it('are not needed for a manual resultType, which is sent as complete', async () => {
    for (const [method, params, type] of [
      ['jobs/hand', {}, 'complete'],
      ['jobs/get', { odd: true }, 'complete'],
      ['jobs/made', {}, 'job'],
    ] as const) {
      const { message } = await modern(host.url, method, params, DECLARED)
      expect(message.result.resultType, method).to.equal(type)
    }
  })
})
