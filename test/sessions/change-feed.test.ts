// Tests the change feed, which notifies subscribers of list and resource changes.
import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import { type Announcement, createChangeFeed, type Subscriber } from '../../core/sessions/change-feed.ts'
import { META } from '../../core/transport.ts'
import { createMemoryChangeBus } from '../support/memory-services.ts'
import { createTestLog } from '../support/start-host.ts'

type Lists = Subscriber['lists']

/** A feed on a bus of its own, and subscribers that keep what they are told. */
function createFeed() {
  const bus = createMemoryChangeBus()
  const feed = createChangeFeed(bus, createTestLog())
  function subscribe(lists: Lists = new Set(['tools', 'resources', 'prompts']), toolsets?: readonly string[]) {
    const told: Announcement[] = []
    const subscription = feed.subscribe({
      lists,
      covers: toolset => toolset === undefined || toolsets === undefined || toolsets.includes(toolset),
      deliver: announcement => void told.push(announcement),
    })
    return { told, subscription, methods: () => told.map(({ method }) => method) }
  }
  return { bus, feed, subscribe }
}

const fails = (error: Error) => () => {
  throw error
}

describe('Change feed', () => {
  it('serializes a notification once for all subscribers', () => {
    const { bus, subscribe } = createFeed()
    const listeners = Array.from({ length: 1_000 }, () => subscribe())
    for (const { subscription } of listeners) subscription.watch('note://a')
    bus.publish({ kind: 'tools', toolset: undefined })
    bus.publish({ kind: 'resource', uri: 'note://a' })
    const [first] = listeners
    expect(first?.told).to.have.length(2)
    for (const { told } of listeners) {
      expect(told).to.have.length(2)
      told.forEach((announcement, index) => {
        expect(announcement).to.equal(first?.told[index])
      })
    }
  })

  it('notifies list subscribers, and toolset subscribers with access to the toolset', () => {
    const { bus, subscribe } = createFeed()
    const tools = subscribe(new Set(['tools']))
    const prompts = subscribe(new Set(['prompts']))
    const elsewhere = subscribe(undefined, ['other'])
    bus.publish({ kind: 'tools', toolset: 'mine' })
    bus.publish({ kind: 'prompts', toolset: undefined })
    bus.publish({ kind: 'resources', toolset: 'other' })
    expect(tools.methods()).to.deep.equal(['notifications/tools/list_changed'])
    expect(prompts.methods()).to.deep.equal(['notifications/prompts/list_changed'])
    expect(elsewhere.methods()).to.deep.equal([
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
    ])
  })

  it('notifies resource subscribers once per change', () => {
    const { bus, subscribe } = createFeed()
    const [watching, other] = [subscribe(), subscribe()]
    watching.subscription.watch('note://a')
    watching.subscription.watch('note://a')
    other.subscription.watch('note://b')
    bus.publish({ kind: 'resource', uri: 'note://a' })
    expect([watching.told.length, other.told.length]).to.deep.equal([1, 0])
    watching.subscription.unwatch('note://a')
    watching.subscription.unwatch('note://never')
    bus.publish({ kind: 'resource', uri: 'note://a' })
    expect(watching.told).to.have.length(1)
  })

  it('writes valid notifications for sessions and with subscription id for subscriptions', () => {
    const { bus, subscribe } = createFeed()
    const { told, subscription } = subscribe()
    subscription.watch('note://"quoted"')
    bus.publish({ kind: 'resource', uri: 'note://"quoted"' })
    bus.publish({ kind: 'prompts', toolset: undefined })
    const [updated, changed] = told.map(({ plain }) => JSON.parse(plain))
    expect(updated).to.deep.equal({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri: 'note://"quoted"' },
    })
    expect(changed).to.deep.equal({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed', params: {} })
    for (const id of [0, 7, '', 'a"b']) {
      const [first, second] = told.map(announcement => JSON.parse(announcement.tagged(id)))
      expect(first.params).to.deep.equal({ uri: 'note://"quoted"', _meta: { [META.subscriptionId]: id } })
      expect(second.params).to.deep.equal({ _meta: { [META.subscriptionId]: id } })
    }
  })

  it('notifies subscribers without a view of every list on reload', () => {
    const log = createTestLog()
    const feed = createChangeFeed(createMemoryChangeBus(), log)
    const told: string[] = []
    const subscribe = (name: string, view: () => never) =>
      feed.subscribe({ lists: new Set(['tools']), covers: () => true, view, deliver: () => void told.push(name) })
    subscribe('refused', fails(new HostError('internal')))
    subscribe('failing', fails(new TypeError('no view')))
    feed.subscribe({ lists: new Set(['tools']), covers: () => true, deliver: () => void told.push('any') })
    expect(feed.review()()).to.equal(3)
    expect(told).to.deep.equal(['refused', 'failing', 'any'])
    expect(log.lines.map(({ err }) => (err as Error).message)).to.deep.equal(['no view', 'no view'])
  })

  it('unsubscribes from the bus with the last subscriber', () => {
    const subscriptions: string[] = []
    const bus = createMemoryChangeBus()
    const feed = createChangeFeed(
      {
        publish: bus.publish,
        subscribe(listener) {
          subscriptions.push('begun')
          const end = bus.subscribe(listener)
          return () => {
            subscriptions.push('ended')
            end()
          }
        },
      },
      createTestLog(),
    )
    const told: string[] = []
    const subscribe = () =>
      feed.subscribe({ lists: new Set(['tools']), covers: () => true, deliver: ({ method }) => void told.push(method) })
    const [one, two] = [subscribe(), subscribe()]
    one.watch('note://a')
    one.end()
    expect([feed.size, subscriptions]).to.deep.equal([1, ['begun']])
    two.end()
    expect([feed.size, subscriptions]).to.deep.equal([0, ['begun', 'ended']])
    bus.publish({ kind: 'tools', toolset: undefined })
    bus.publish({ kind: 'resource', uri: 'note://a' })
    expect(told).to.deep.equal([])
    subscribe()
    bus.publish({ kind: 'tools', toolset: undefined })
    expect(told).to.have.length(1)
  })

  it('tolerates a subscriber that ends during notification', () => {
    const { bus, feed, subscribe } = createFeed()
    const subscription = feed.subscribe({
      lists: new Set(['tools']),
      covers: () => true,
      deliver: () => subscription.end(),
    })
    const other = subscribe()
    bus.publish({ kind: 'tools', toolset: undefined })
    bus.publish({ kind: 'tools', toolset: undefined })
    expect(other.told).to.have.length(2)
    expect(feed.size).to.equal(1)
  })
})
