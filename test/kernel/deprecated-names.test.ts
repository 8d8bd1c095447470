// Tests that deprecated names of the plugin host work and log one warning per plugin and name.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { OLD_NAMES } from '../../core/kernel/old-names.ts'
import { definePlugin } from '../../core/plugin-host.ts'
import { withPlugins } from '../fixtures/plugins.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

/** Reads a member by its name, which can have a `config.` before it. */
const memberOf = (host: object, path: string): unknown =>
  path.split('.').reduce<unknown>((from, key) => Reflect.get(Object(from), key), host)

describe('Old names of the plugin host', () => {
  it('are the new members', async () => {
    const differing: string[] = []
    const old = definePlugin({
      setup(host) {
        for (const [name, path] of Object.entries(OLD_NAMES)) {
          const member = Reflect.get(host, name)
          // `identify` also runs for users of other plugins; see test/flow/authenticators.test.ts.
          if (name === 'identify') continue
          if (member === undefined || member !== memberOf(host, path)) differing.push(name)
        }
      },
    })
    await startHost(withPlugins({ old: old() }))
    expect(differing).to.deep.equal([])
  })

  it('work in a plugin, with one warning for each plugin and name that says the new name and the place', async () => {
    const trace: string[] = []
    const old = definePlugin<{ word?: string }>({
      options: { type: 'object', additionalProperties: false, properties: { word: { type: 'string' } } },
      setup(host) {
        host.edge((_ctx, next) => next())
        host.crossOrigin(() => undefined)
        host.starting(() => void trace.push(`started for ${host.purpose}`))
        host.edge((_ctx, next) => next())
      },
    })
    const config = {
      ...withPlugins({ first: old(), second: old() }),
      routes: { '/': { toolsets: 'all' }, '/own': { toolsets: 'all', plugins: { first: { word: 'own' } } } },
    }
    const { log } = await startHost(config)
    expect(trace).to.deep.equal(Array(3).fill('started for serve'))
    const warnings = log.filter(({ message = '' }) => message.includes('deprecated'))
    const told = warnings.map(({ plugin, message = '' }) => `${String(plugin)}: ${message.split('.', 3).join('.')}`)
    expect(told.sort()).to.deep.equal(
      ['first', 'second'].flatMap(plugin => [
        `${plugin}: host.crossOrigin is deprecated, and not part of the plugin API; see "Old names" in docs/plugins.md`,
        `${plugin}: host.edge is deprecated. Use host`,
        `${plugin}: host.purpose is deprecated. Use host`,
        `${plugin}: host.starting is deprecated. Use host`,
      ]),
    )
    expect(warnings[0]?.message).to.equal(
      'host.edge is deprecated. Use host.onRequest; see "Old names" in docs/plugins.md.',
    )
    expect(String(warnings[0]?.['used'])).to.match(/deprecated-names\.test\.ts:\d+/)
  })

  it('are listed in docs/plugins.md', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/plugins.md'), 'utf8')
    for (const [name, path] of Object.entries(OLD_NAMES)) expect(page).to.include(`\`${name}\`: \`${path}\``)
  })
})
