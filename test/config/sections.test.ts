// Tests config sections and objects that plugins of one host share.
import { expect } from 'chai'
import { defineConfig } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import type { SectionSchemas } from '../../core/plugin.ts'
import { REDIS_SECTIONS, type RedisSections } from '../../plugins/families/redis/section.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { makeFolder, removeFolders } from './folder.ts'

afterEach(stopHosts)
after(removeFolders)

interface QueueSections {
  queue: { url: string; size?: number }
}

const QUEUE_SECTIONS: SectionSchemas<QueueSections> = {
  queue: {
    type: 'object',
    additionalProperties: false,
    properties: { url: { type: 'string' }, size: { type: 'integer', minimum: 1 } },
    required: ['url'],
  },
}
const NO_OPTIONS = { type: 'object', additionalProperties: false, properties: {} } as const

/** A plugin that hands what it reads to the test. */
const reading = (seen: unknown[], sections = QUEUE_SECTIONS) =>
  definePlugin<Record<never, never>, Record<never, never>, QueueSections>({
    options: NO_OPTIONS,
    sections,
    setup: host => void seen.push(host.config.section('queue')?.url, host.config.section('queue')?.size),
  })()

describe('Plugin config sections', () => {
  const queue = { url: 'queue://a\n', size: 3 }
  const withQueue = (plugins: NonNullable<Parameters<typeof withPlugins>[0]>, section: object = { queue }) =>
    withPlugins(plugins, section)

  it('are optional and readable by every plugin that declares them', async () => {
    const seen: unknown[] = []
    await startHost(withQueue({ one: reading(seen), other: reading(seen) }))
    expect(seen).to.deep.equal(['queue://a\n', 3, 'queue://a\n', 3])
    seen.length = 0
    await startHost(withPlugins({ one: reading(seen) }))
    expect(seen).to.deep.equal([undefined, undefined])
  })

  it('are recognized for a plugin loaded from a file', async () => {
    const core = JSON.stringify(new URL('../../core/index.ts', import.meta.url).href)
    const folder = await makeFolder({
      'acme.mjs': `
import { definePlugin } from ${core}
const url = { type: 'string', writeOnly: true }
export const acme = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: {} },
  sections: { acme: { type: 'object', additionalProperties: false, properties: { url } } },
  setup(host) {
    const { url } = host.config.section('acme')
    host.endpoint('/acme', { public: true, methods: { GET: ctx => { ctx.body = url } } })
  },
})`,
    })
    const plugins = { './acme.mjs': {} }
    const { url } = await startHost(withQueue(plugins, { acme: { url: 'acme://a\n' } }), folder)
    // A secret, so without the line break that a file ends with.
    expect(await (await fetch(`${url}/acme`)).text()).to.equal('acme://a')
    await expectStopped(
      withQueue(plugins, { acme: { ulr: 'a' } }),
      /acme\.ulr\s+MH1011 unknown option\s+found a string; expected url/,
      folder,
    )
    await expectStopped(withQueue(plugins, { acmee: { url: 'a' } }), /acmee\s+MH1011 unknown option; .*"acme"/, folder)
  })

  it('are validated with the location of each error', async () => {
    const plugins = { one: reading([]) }
    await expectStopped(withQueue(plugins, { queue: {} }), /queue\.url\s+MH1012 missing/)
    await expectStopped(
      withQueue(plugins, { queue: { url: 'a', siez: 1 } }),
      /queue\.siez\s+MH1011 unknown option; .*"size"/,
    )
    await expectStopped(withQueue(plugins, { queu: queue }), /queu\s+MH1011 unknown option; did you mean "queue"/)
  })

  it('are unknown options if no plugin declares them', async () => {
    await expectStopped(withQueue({}), /queue\s+MH1011 unknown option/)
    await expectStopped(withQueue({ bare: plugin(() => undefined) }), /queue\s+MH1011 unknown option/)
  })

  it('include the built-in redis section through `mcp-host/redis`', async () => {
    const seen: unknown[] = []
    const counting = definePlugin<Record<never, never>, Record<never, never>, RedisSections>({
      options: NO_OPTIONS,
      sections: REDIS_SECTIONS,
      setup: host => void seen.push(host.config.section('redis')?.url),
    })
    await startHost(withPlugins({ counting: counting() }, { redis: { url: 'redis://127.0.0.1:1\n' } }))
    expect(seen).to.deep.equal(['redis://127.0.0.1:1'])
  })

  it('report other config errors next to an unknown section', async () => {
    const wrong = { queue, stateless: 'yes' as never }
    await expectStopped(withQueue({ one: reading([]) }, wrong), /^The config has a problem\.\s+\S+\s+stateless\s/)
  })

  it('reject two schemas under one name, and names of host keys', async () => {
    const other = { queue: { ...QUEUE_SECTIONS.queue, description: 'Another.' } }
    await expectStopped(withQueue({ one: reading([]), other: reading([], other) }), /plugins\.other.*"queue"/)
    const taking = (name: string) =>
      definePlugin({ options: NO_OPTIONS, sections: { [name]: QUEUE_SECTIONS.queue }, setup: () => undefined })()
    await expectStopped(
      withPlugins({ one: taking('server') }),
      `plugins.one: it declares the section "server", which is`,
    )
    await expectStopped(withPlugins({ one: taking('runSession') }), /"runSession"/)
    await expectStopped(withPlugins({ one: taking('redis') }), /plugins\.one.*"redis"/)
  })

  it('are unreadable for a plugin that does not declare them', async () => {
    const sneaky = plugin(host => {
      // @ts-expect-error: without `sections` there is none to read
      host.config.section('queue')
    })
    await expectStopped(withQueue({ sneaky, one: reading([]) }), /plugins\.sneaky.*"queue"/)
  })

  it('are typed in the config', () => {
    const routes = { '/': { toolsets: [] } }
    const config = defineConfig<QueueSections>({ server: { name: 'a', version: '1' }, toolsets: {}, routes, queue })
    expect(config.queue.size).to.equal(3)
    // @ts-expect-error: as unknown as any other key
    defineConfig({ server: { name: 'a', version: '1' }, toolsets: {}, routes, queue })
  })
})

describe('Objects shared by plugins', () => {
  const KEY = Symbol('things')

  it('are created once per host and closed after all plugins that use them', async () => {
    const log: string[] = []
    let made = 0
    const sharing = (name: string) =>
      plugin(host => {
        const thing = host.share(
          KEY,
          () => ({ number: ++made }),
          ({ number }) => void log.push(`${number} closed`),
        )
        host.onClose(() => void log.push(`${name} of ${thing.number}`))
      })
    const first = await startHost(withPlugins({ a: sharing('a'), b: sharing('b') }))
    const second = await startHost(withPlugins({ c: sharing('c') }))
    await first.host.close({ grace: 0 })
    await second.host.close({ grace: 0 })
    expect(log).to.deep.equal(['b of 1', 'a of 1', '1 closed', 'c of 2', '2 closed'])
  })

  it('are identified by their key, and a factory that returns undefined runs once', async () => {
    const seen: unknown[] = []
    const sharing = (key: object | symbol) =>
      plugin(host => void seen.push(host.share(key, () => void seen.push('made'))))
    const key = {}
    await startHost(withPlugins({ a: sharing(key), b: sharing(key), c: sharing({}) }))
    expect(seen).to.deep.equal(['made', undefined, undefined, 'made', undefined])
  })
})
