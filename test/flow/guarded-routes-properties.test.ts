// Tests authentication of generated route tables with every path encoding, against an independent implementation of
// route matching.
import { expect } from 'chai'
import fc from 'fast-check'
import { defineTool, type RouteSettings } from '../../core/index.ts'
import { LOGIN, lock, WELL_KNOWN } from '../plugins/resource-metadata/documents.ts'
import { closePaths, readToolNames, requestPath } from '../support/raw-path.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { caseCount } from '../support/thorough.ts'

const TABLES = caseCount(8, 2)
const REQUESTS = caseCount(40, 30)
const SEED = 20_261_122

const NAMES = ['a', 'admin', 'x.y', 'é', 'b c']
const toolsets = Object.fromEntries(NAMES.map(name => [name, [defineTool({ name, handler: () => name })]]))

interface RouteDraft {
  readonly parts: readonly string[]
  readonly last: 'plain' | 'parameter' | 'optional'
  readonly name: string
  readonly byParameter: boolean
  readonly guarded: boolean
  readonly sse: boolean
  readonly documents: boolean
}

const part = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...NAMES, 't', 'sse') },
  { weight: 2, arbitrary: fc.constant(':') },
)
const draft: fc.Arbitrary<RouteDraft> = fc.record({
  parts: fc.array(part, { maxLength: 2 }),
  last: fc.constantFrom('plain', 'plain', 'parameter', 'optional'),
  name: fc.constantFrom(...NAMES),
  byParameter: fc.boolean(),
  guarded: fc.boolean(),
  sse: fc.boolean(),
  documents: fc.boolean(),
})

/** A route's path, each parameter named by its place, and its settings. */
function routeOf({ parts, last, name, byParameter, guarded, sse, documents }: RouteDraft): [string, RouteSettings] {
  const texts = [...parts, last === 'plain' ? name : ':']
  const named = texts.map((text, index) => (text === ':' ? `:p${index}` : text))
  const path = `/${named.join('/')}${last === 'optional' ? '?' : ''}`
  const chooses = byParameter && last !== 'plain'
  const settings: RouteSettings = {
    toolsets: chooses ? `:p${texts.length - 1}` : name,
    ...(chooses && last === 'optional' && { default: [name] }),
    ...(guarded && { authorize: true as const }),
    plugins: {
      ...(!sse && { 'transport-sse': false as const }),
      'resource-metadata': documents ? { resourceName: path } : (false as const),
    },
  }
  return [path, settings]
}

/** Whose the address of these segments is: of all routes that match, the one that says most, most to the left. */
function ownerOf(routes: ReadonlyArray<[string, RouteSettings]>, segments: readonly string[]) {
  const matching = routes.flatMap(([path, settings]) => {
    const parts = path.split('/').slice(1)
    const optional = path.endsWith('?') && parts.length === segments.length + 1
    const wanted = optional ? parts.slice(0, -1) : parts
    if (wanted.length !== segments.length) return []
    if (!wanted.every((text, index) => text.startsWith(':') || text === segments[index])) return []
    const chosen = settings.toolsets as string
    const toolset = !chosen.startsWith(':')
      ? chosen
      : optional
        ? settings.default?.[0]
        : segments[Number(chosen.slice(2))]
    const rank = wanted.map(text => (text.startsWith(':') ? '1' : '0')).join('') + (optional ? '1' : '0')
    return [{ path, rank, guarded: settings.authorize === true, toolset }]
  })
  return matching.sort((one, other) => (one.rank < other.rank ? -1 : 1))[0]
}

/**
 * What the most forgiving reader would take a path for: decoded until nothing changes, slashes merged, dots walked. Names
 * that differ in case or in their Unicode form are different names.
 */
function mostForgiving(path: string): string[] {
  let text = path
  for (let before = ''; before !== text; ) {
    before = text
    text = text.replace(/(?:%[0-9a-f]{2})+/gi, escapes => {
      try {
        return decodeURIComponent(escapes)
      } catch {
        return escapes
      }
    })
  }
  const segments: string[] = []
  for (const segment of text.replaceAll('\\', '/').split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments
}

const escaped = (character: string) =>
  [...Buffer.from(character)].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')

type Spell = (path: string) => string
const everyOther = (change: (character: string) => string, by: number) => (path: string) =>
  [...path].map((character, index) => (character !== '/' && index % by === 1 ? change(character) : character)).join('')
const SPELLS: readonly Spell[] = [
  path => path,
  everyOther(escaped, 1),
  everyOther(escaped, 2),
  everyOther(escaped, 3),
  everyOther(character => escaped(character).toUpperCase(), 2),
  everyOther(character => escaped(character).replace('%', '%25'), 2),
  everyOther(character => character.toUpperCase(), 1),
  path => path.normalize('NFD'),
  path => `${path}/`,
  path => `${path}//`,
  path => `/${path}`,
  path => path.replace(/\/(?=[^/]*$)/, '//'),
  path => path.replace(/\/(?=[^/]*$)/, '/./'),
  path => path.replace(/\/(?=[^/]*$)/, '/%2e/'),
  path => path.replace(/\/(?=[^/]*$)/, '/x/../'),
  path => path.replace(/\/(?=[^/]*$)/, '/x/%2E%2e/'),
  path => path.replace(/\/(?=[^/]*$)/, '%2f'),
  path => path.replace(/\/(?=[^/]*$)/, '\\'),
  path => path.replace(/\/(?=[^/]*$)/, '%5C'),
  path => `${path}%00`,
  path => `${path}%`,
  path => `${path};v=1`,
  path => `${path}%20`,
  path => `${path}.`,
]
/** Everything that Node's client would not send is escaped; nothing else. */
const sendable = (path: string) => path.replace(/[^\x21-\x7e]/g, escaped)

const ask = fc.record({
  route: fc.nat(),
  values: fc.array(fc.constantFrom(...NAMES, 't', 'sse', 'nobody'), { minLength: 3, maxLength: 3 }),
  short: fc.boolean(),
  place: fc.constantFrom('', '', '/sse', WELL_KNOWN),
  spells: fc.array(fc.constantFrom(...SPELLS), { minLength: 1, maxLength: 2 }),
})

const table = fc.record({
  drafts: fc.uniqueArray(draft, { minLength: 2, maxLength: 6, selector: one => routeOf(one)[0] }),
  asks: fc.array(ask, { minLength: REQUESTS, maxLength: REQUESTS }),
})

type Routes = ReadonlyArray<[string, RouteSettings]>

/** A host of these routes; undefined where the config is refused. */
async function start(routes: Routes) {
  const plugins = {
    'transport-streamable': {},
    'transport-sse': {},
    lock: lock(),
    'resource-metadata': { authorizationServers: [LOGIN] },
  }
  try {
    return await startHost({ toolsets, routes: Object.fromEntries(routes), plugins })
  } catch (error) {
    expect(String(error)).to.match(/are the same path|neither is more specific|two handlers are registered/)
    return undefined
  }
}

after(closePaths)
afterEach(stopHosts)

describe('route matching: generated route tables and path encodings', () => {
  const counts = { tables: 0, refused: 0, served: 0, guarded: 0, nowhere: 0, documents: 0 }

  /** Throws where an answer is not one that the owner of the address may give. */
  function judge(routes: Routes, place: string, path: string, answer: Awaited<ReturnType<typeof requestPath>>) {
    const said = `${path} of ${JSON.stringify(routes)}: ${answer.status} ${answer.body}`
    if (answer.status === 401) counts.guarded++
    if (answer.status === 404) counts.nowhere++
    if (answer.status !== 200) return
    const segments = mostForgiving(path)
    if (place === WELL_KNOWN) {
      counts.documents++
      const { resource_name: name, resource } = JSON.parse(answer.body)
      const owner = ownerOf(routes, segments.slice(2))
      expect(name, said).to.equal(owner?.path)
      expect(mostForgiving(new URL(resource).pathname), said).to.deep.equal(segments.slice(2))
      return
    }
    counts.served++
    // A path that ends in /sse may be an address by itself: that of a stream is the one above it.
    const owner = ownerOf(routes, answer.body === '' ? segments.slice(0, -1) : segments)
    expect(owner?.guarded, said).to.equal(false)
    if (answer.body !== '') expect(readToolNames(answer), said).to.deep.equal([owner?.toolset])
  }

  it('protects guarded routes, serves open ones, and does not depend on declaration order', async () => {
    const property = fc.asyncProperty(table, async ({ drafts, asks }) => {
      const routes = drafts.map(routeOf)
      const hosts = [await start(routes), await start(routes.toReversed())] as const
      const [host, reversed] = hosts
      expect(reversed !== undefined, `${JSON.stringify(routes)} in another order`).to.equal(host !== undefined)
      counts.tables++
      if (!host || !reversed) return void counts.refused++
      for (const { route, values, short, place, spells } of asks) {
        const parts = routes[route % routes.length]?.[0].split('/').slice(1) ?? []
        const kept = short && parts.at(-1)?.endsWith('?') ? parts.slice(0, -1) : parts
        const plain = kept.map((text, index) => (text.startsWith(':') ? values[index] : text)).join('/')
        const base = place === WELL_KNOWN ? `${place}/${plain}` : `/${plain}${place}`
        const method = place === '' ? 'POST' : 'GET'
        for (const path of [base, spells.reduce((text, spell) => spell(text), base)].map(sendable)) {
          const answer = await requestPath(host.url, method, path)
          judge(routes, place, path, answer)
          const other = await requestPath(reversed.url, method, path)
          expect(other.status, `${path} of ${JSON.stringify(routes)} in another order`).to.equal(answer.status)
          // What ends in /sse is a stream's before it is an address with that value.
          if (path !== sendable(base) || place !== '' || path.endsWith('/sse')) continue
          // The plain spelling of an address that somebody serves is served, or asks for a token.
          const owner = ownerOf(routes, mostForgiving(path))
          const there = owner?.toolset !== undefined && NAMES.includes(owner.toolset)
          const wanted = there ? (owner.guarded ? 401 : 200) : 404
          expect(answer.status, `${path} of ${JSON.stringify(routes)}`).to.equal(wanted)
        }
      }
      await stopHosts()
    })
    await fc.assert(property, { numRuns: TABLES, seed: SEED, endOnFailure: true })
    expect(counts.tables - counts.refused).to.be.greaterThan(TABLES / 4)
    for (const count of [counts.served, counts.guarded, counts.nowhere, counts.documents]) {
      expect(count).to.be.greaterThan(TABLES)
    }
  })
})
