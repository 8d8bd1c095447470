// Tests that invalid values in plugin setup stop startup with the plugin name, the found value and the fix.
import type { InternalHost } from '../../core/internal.ts'
import type { Extension } from '../../core/plugin.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { stopHosts } from '../support/start-host.ts'

after(stopHosts)

const ID = 'com.example/jobs'
const answer = () => ({})
const store = { append: () => 1, after: () => [], drop() {} }

/** What an author without types, or with a cast, may give. */
interface Unchecked {
  provide(slot: unknown, service: unknown): void
  method(name: unknown, answer: unknown): void
  extension(id: string, extension?: unknown): void
}

const loose = (host: InternalHost) => host as unknown as Unchecked
const adding = (extension: Extension | object) => (host: InternalHost) => loose(host).extension(ID, extension)

const MISTAKES: ReadonlyArray<readonly [what: string, setup: (host: InternalHost) => void, words: readonly string[]]> =
  [
    [
      'an unknown slot',
      h => loose(h).provide('eventStor', store),
      ['there is no slot "eventStor"; a plugin can provide: access, store'],
    ],
    ['a service without methods', h => loose(h).provide('eventStore', {}), ['eventStore', 'append, after, drop']],
    ['a service without methods, in English', h => loose(h).provide('eventStore', {}), ['is an empty object without']],
    [
      'a challenge with a line break',
      h => h.authenticate((_ctx, next) => next(), { challenge: 'x\ny' }),
      ['plugins.mine', 'host.authenticate(): `challenge` is "x\\ny"; expected a scheme'],
    ],
    [
      'a connection in setup',
      h => void h.connect({} as never, {} as never),
      ['plugins.mine: host.connect() requires provides'],
    ],
    ['a service that is nothing', h => loose(h).provide('eventStore', undefined), ['eventStore', 'undefined']],
    [
      'a slot twice',
      h => {
        h.provide('eventStore', store)
        h.provide('eventStore', store)
      },
      ["it provides eventStore for routes['/'] twice"],
    ],
    ['an extension without its parts', h => loose(h).extension(ID), [ID, 'found nothing', 'an object']],
    ['an unknown part', adding({ method: {} }), [ID, 'method: unknown option', 'did you mean "methods"?']],
    ['a method that is no function', adding({ methods: { 'jobs/get': 5 } }), ["methods['jobs/get']", 'found 5']],
    ['a method without a name', adding({ methods: { '': answer } }), ["methods['']", 'wrong name']],
    [
      'a method that is a notification',
      adding({ methods: { 'notifications/x': answer } }),
      ["methods['notifications/x']", 'wrong name'],
    ],
    [
      'a filter that is no function',
      adding({ listenFilters: { jobIds: [] } }),
      ['listenFilters.jobIds', 'found an empty list'],
    ],
    ['settings that are a list', adding({ settings: [] }), ['settings', 'expected an object', 'found an empty list']],
    ['settings that are no JSON', adding({ settings: { run() {} } }), ['settings.run', 'found a function']],
    ['settings with a bigint', adding({ settings: { most: 1n } }), ['settings.most', 'found a bigint']],
    [
      'types of results as a text',
      adding({ results: { 'tools/call': 'job' } }),
      ["results['tools/call']", 'expected a list'],
    ],
    [
      'results of an unknown method',
      adding({ results: { 'tools/cal': ['job'] } }),
      ['"tools/cal"', 'no plugin of its routes handles'],
    ],
    ['host.method without a function', h => loose(h).method('jobs/get', undefined), ['host.method() takes a function']],
    [
      'a method of transport-streamable',
      h => h.method('subscriptions/listen', answer),
      ['"subscriptions/listen"', 'plugins.transport-streamable'],
    ],
  ]

describe('Plugin authoring errors stop startup', () => {
  for (const [what, setup, words] of MISTAKES) {
    it(what, async () => {
      for (const word of words) await expectStopped(withPlugins({ mine: plugin(setup) }), word, undefined)
      await expectStopped(withPlugins({ mine: plugin(setup) }), /plugins\.(mine|transport-streamable)/)
    })
  }

  it('a method that another plugin already defines', async () => {
    const other = plugin(host => host.method('jobs/get', answer))
    const mine = plugin(host => void host.extension(ID, { methods: { 'jobs/get': answer } }))
    await expectStopped(withPlugins({ other, mine }), 'handled by plugins.other')
  })
})
