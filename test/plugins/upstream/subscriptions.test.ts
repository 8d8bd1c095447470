// Tests subscriptions to a 2026-07-28 upstream server: number of URIs, refusals, time-outs and their retries.
import { expect } from 'chai'
import { defineResource, defineTool } from '../../../core/index.ts'
import { serveModern, serveScript, stopServers } from '../../remote/support/servers.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import type { RpcMessage } from '../../support/rpc.ts'
import { listen, nextMessage } from '../../support/session-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

afterEach(async () => {
  await stopHosts()
  await stopServers()
})

type Stream = Awaited<ReturnType<typeof listen>>

const page = defineResource({ name: 'page', uriTemplate: 'test://on/{id}', handler: ({ id }) => `${id}` })
const urisOf = (name: string, count: number) => Array.from({ length: count }, (_, at) => `test://on/${name}${at}`)

const gatewayOf = (url: string, more: Parameters<typeof startHost>[2] = {}) =>
  startHost(
    {
      toolsets: {},
      routes: { '/': { toolsets: 'far' } },
      plugins: { 'transport-streamable': {}, upstream: { refresh: 'off', servers: { far: { url } } } },
    },
    undefined,
    more,
  )

async function watching(url: string, notifications: object): Promise<Stream> {
  const stream = await listen(`${url}/`, notifications)
  expect((await nextMessage(stream)).method).to.equal('notifications/subscriptions/acknowledged')
  return stream
}

/** Repeats a change until its notification arrives. */
async function arrives(stream: Stream, change: () => void, expected: (message: RpcMessage) => boolean) {
  let found = false
  const read = async () => {
    while (!found) found = expected(await nextMessage(stream))
  }
  const reading = read()
  await eventually('the notification arrives', () => {
    if (!found) change()
    return found
  })
  await reading
}

const isUpdate = (uri: string) => (message: RpcMessage) => message.params['uri'] === uri

describe('Subscriptions to an upstream server', () => {
  it('of a client with many URIs do not stop those of other clients', async () => {
    const one = defineTool({ name: 'one', handler: () => 'text' })
    const origin = await startHost({ toolsets: { all: [page, one] }, routes: { '/': { toolsets: 'all' } } })
    const { url } = await gatewayOf(`${origin.url}/`)
    const { runtime } = origin.host
    const updated = (uri: string) => () => runtime.resourceUpdated(uri)
    const victim = await watching(url, { toolsListChanged: true, resourceSubscriptions: ['test://on/victim'] })
    await arrives(victim, updated('test://on/victim'), isUpdate('test://on/victim'))
    const many = await Promise.all(['a', 'b'].map(name => watching(url, { resourceSubscriptions: urisOf(name, 900) })))
    for (const [index, name] of ['a', 'b'].entries())
      await arrives(many[index] as Stream, updated(`test://on/${name}899`), isUpdate(`test://on/${name}899`))
    await arrives(victim, updated('test://on/victim'), isUpdate('test://on/victim'))
    let count = 0
    await arrives(
      victim,
      () => runtime.tools.add(defineTool({ name: `more${count++}`, handler: () => 'text' })),
      ({ method }) => method === 'notifications/tools/list_changed',
    )
    for (const stream of [victim, ...many]) stream.drop()
  })

  interface Listening {
    readonly uris: readonly string[]
    isOpen: boolean
    /** Ends the subscription with its result. */
    finish(): void
  }

  /** A server that confirms a subscription if `accept` returns true, refuses it with an error, or does not respond. */
  async function scripted(accept: (uris: readonly string[]) => boolean | 'silent') {
    const listens: Listening[] = []
    const url = await serveModern(
      ({ id, method, params, response, json }) => {
        const resourceTemplates = [{ name: 'page', uriTemplate: 'test://on/{id}' }]
        if (method !== 'subscriptions/listen') {
          json({ jsonrpc: '2.0', id, result: { resultType: 'complete', resources: [], resourceTemplates } })
          return
        }
        const { resourceSubscriptions: uris = [] } = params['notifications'] as { resourceSubscriptions?: string[] }
        const answer = accept(uris)
        if (answer === false) {
          json({ jsonrpc: '2.0', id, error: { code: -32_602, message: 'too many' } }, 400)
          return
        }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const send = (message: object) =>
          void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
        const finish = () => {
          send({ id, result: { resultType: 'complete' } })
          response.end()
        }
        const one: Listening = { uris, isOpen: true, finish }
        listens.push(one)
        response.once('close', () => {
          one.isOpen = false
        })
        response.flushHeaders()
        if (answer === true) send({ method: 'notifications/subscriptions/acknowledged', params: { notifications: {} } })
      },
      { resources: { subscribe: true } },
    )
    const open = () => listens.filter(({ isOpen }) => isOpen).flatMap(({ uris }) => [...uris])
    return { url, listens, open }
  }

  /** Advances the clock in steps short enough that no subscription times out while its request is under way. */
  const advanceUntil = (clock: ManualClock, what: string, done: () => boolean, step = 250) =>
    eventually(what, async () => {
      if (!done()) await clock.advance(step)
      return done()
    })

  const warnings = ({ log }: StartedHost) => log.filter(({ code }) => code === 'MH2951')

  it('are divided if the server refuses their number, and keep those that it has confirmed', async () => {
    const server = await scripted(uris => uris.length <= 10)
    const clock = createManualClock()
    const gateway = await gatewayOf(server.url, { clock })
    const first = await watching(gateway.url, { resourceSubscriptions: urisOf('a', 8) })
    await advanceUntil(clock, 'the first subscription', () => server.open().length === 8)
    const [kept] = server.listens
    const second = await watching(gateway.url, { resourceSubscriptions: urisOf('b', 25) })
    await advanceUntil(clock, 'all URIs are subscribed', () => new Set(server.open()).size === 33)
    expect(kept?.isOpen).to.equal(true)
    expect(warnings(gateway)[0]).to.include({ upstream: 'far', uris: 33 })
    for (const stream of [first, second]) stream.drop()
    await eventually('no URI is subscribed', () => server.open().length === 0)
  })

  it('of URIs that the server refuses do not take the place of other URIs', async () => {
    const refused = new Set<string>()
    const server = await scripted(uris => {
      const isBad = uris.some(uri => uri.includes('/bad'))
      if (isBad && uris.length === 1) refused.add(uris[0] ?? '')
      return !isBad
    })
    const clock = createManualClock()
    const gateway = await gatewayOf(server.url, { clock })
    const bad = await watching(gateway.url, { resourceSubscriptions: urisOf('bad', 60) })
    await advanceUntil(clock, 'most URIs were refused alone', () => refused.size >= 45)
    const good = await watching(gateway.url, { resourceSubscriptions: urisOf('good', 2) })
    await advanceUntil(clock, 'the other URIs are subscribed', () => new Set(server.open()).size === 2)
    for (const stream of [bad, good]) stream.drop()
  })

  it('are tried again with growing delays, and end without a confirmation', async () => {
    const clock = createManualClock()
    const answers: Array<boolean | 'silent'> = [true, 'silent', false, true]
    const active: string[][] = []
    const server = await scripted(() => {
      active.push(server.open())
      return answers.shift() ?? true
    })
    const gateway = await gatewayOf(server.url, { clock })
    const [uri = ''] = urisOf('a', 1)
    const first = await watching(gateway.url, { resourceSubscriptions: [uri] })
    const update = nextMessage(first)
    await advanceUntil(clock, 'the first subscription', () => server.open().length === 1)
    expect(isUpdate(uri)(await update), 'the server has confirmed it').to.equal(true)
    const second = await watching(gateway.url, { resourceSubscriptions: urisOf('b', 1) })
    await advanceUntil(clock, 'all attempts', () => answers.length === 0 && new Set(server.open()).size === 2, 1_000)
    expect(active).to.have.lengthOf(4)
    for (const uris of active.slice(1)) expect(uris, 'the first subscription stays').to.include(uri)
    await eventually('the subscription without a confirmation ends', () => server.listens[1]?.isOpen === false)
    expect(warnings(gateway)).to.have.lengthOf(1)
    for (const stream of [first, second]) stream.drop()
  })

  it('that the server ends are made again, and report what can have changed', async () => {
    const server = await scripted(() => true)
    const clock = createManualClock()
    const gateway = await gatewayOf(server.url, { clock })
    const [uri = ''] = urisOf('a', 1)
    const stream = await watching(gateway.url, { resourceSubscriptions: [uri] })
    const first = nextMessage(stream)
    await advanceUntil(clock, 'the subscription', () => server.open().length === 1)
    expect(isUpdate(uri)(await first)).to.equal(true)
    const next = nextMessage(stream)
    server.listens[0]?.finish()
    await advanceUntil(clock, 'the next subscription', () => server.listens.length === 2)
    expect(isUpdate(uri)(await next)).to.equal(true)
    expect(server.open()).to.deep.equal([uri])
    stream.drop()
  })
  it('to a legacy server leave room for calls, and end with those of the clients', async () => {
    const pending: Array<() => void> = []
    const subscribed = new Set<unknown>()
    let most = 0
    const url = await serveScript(({ id, method, params, json }) => {
      const answer = (result: object = {}) => json({ jsonrpc: '2.0', id, result })
      const capabilities = { resources: { subscribe: true } }
      if (method === 'initialize') answer({ protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'a' } })
      else if (method === 'resources/subscribe') {
        pending.push(() => {
          subscribed.add(params['uri'])
          answer()
        })
        most = Math.max(most, pending.length)
      } else if (method === 'resources/unsubscribe') {
        subscribed.delete(params['uri'])
        answer()
      } else answer({ resources: [], resourceTemplates: [{ name: 'page', uriTemplate: 'test://on/{id}' }] })
    })
    const gateway = await gatewayOf(url)
    const stream = await watching(gateway.url, { resourceSubscriptions: urisOf('a', 100) })
    await eventually('requests are pending', () => pending.length === 16)
    await eventually('all URIs are subscribed', () => {
      for (const end of pending.splice(0)) end()
      return subscribed.size === 100
    })
    expect(most).to.equal(16)
    stream.drop()
    await eventually('no URI is subscribed', () => subscribed.size === 0)
  })
})
