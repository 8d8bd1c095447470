// Tests that each function over 50 lines of code is listed here with a reason.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect } from 'chai'

const ROOT = join(import.meta.dirname, '..')
const FOLDERS = ['core', 'plugins', 'cli', 'client']
const RULE = 'noExcessiveLinesPerFunction'

/** By file and name. Split a function that is not here; list it only where that would hide how its parts belong together. */
const LONG: Readonly<Record<string, string>> = {
  'cli/dev/terminal.ts watchAndServe': 'the server, the watcher and the keys: what each does to the others',
  'cli/workers/seat.ts createSeat': 'who sits there, who is coming, and how often one died: one state machine',
  'client/acquire.ts createAcquirer': 'three ways to a token over one store and its lock',
  'client/auth-fetch.ts createLoop': 'one request and what was tried for it',
  'client/challenge-parser.ts parseChallengeList': 'a parser: its parts share the text and the place in it',
  'client/engine.ts createEngine': 'the one acquisition that runs, and all who wait for it',
  'client/http.ts createOAuthHttp': 'every step of a request is bound by the same options',
  'client/node/file-cache.ts createFileTokenCache': 'the methods of one interface over one folder and key',
  'client/node/loopback.ts createLoopbackRedirect': 'one server, and the one answer that it waits for',
  'client/session.ts createSession': 'the methods of one interface over one engine, store and key',
  'client/storm.ts createStormBreaker': 'the counts, and what opens and closes the breaker',
  'cli/proxy/older-client/calls.ts createCalls': 'the rounds of one request, and how far each came',
  'cli/proxy/older-client/changes.ts createChanges': 'one subscription that is replaced, ended and had again',
  'cli/proxy/older-client/conversation.ts createConversation': 'what both sides say, over the requests that run',
  'cli/proxy/older-client/translated-relay.ts startTranslatedRelay': 'two directions, and how the conversation opens',
  'cli/proxy/older-sse.ts createOlderSse': 'one stream that is opened again, and all that waits on it',
  'cli/proxy/own-exchanges.ts createOwnExchanges': 'the steps of one request over what is known of its server',
  'cli/proxy/relay.ts startRelay': 'what is on its way, which both directions and the end look at',
  'cli/proxy/session.ts createKeptSession': 'one session and what has to be said again of it',
  'cli/proxy/streamable.ts createStreamable': 'the steps of one line over one session',
  'cli/proxy/streams.ts createSessionStreams': 'the kinds of stream over the same place to come back to',
  'core/assembly.ts buildServices': 'wiring: each service once, in the order in which they need each other',
  'core/host.ts assemble': "wiring: a host's set-up in the order of its steps",
  'core/http/renewal.ts createRenewal': 'what is served, what was found beside it, and what was told of that',
  'core/http/slow-readers.ts watchReaders': 'the connections and what each holds, under bounds for one and for all',
  'core/mcp/asks.ts createAsks': 'the kinds of question of one call, numbered together',
  'core/mcp/catalog.ts createCatalog': 'what is defined, and what is added and removed while it runs',
  'core/mcp/run-handler.ts run': 'the time limit, the end and the response of one handler run share their state',
  'core/mcp/offer.ts createOffers': 'views made ready per route, and what picks from them',
  'core/mcp/stall-watch.ts watch': 'what is measured before and after the first await is one account',
  'core/sessions/change-feed.ts createChangeFeed': 'subscribers, and the bus that is read only while there are any',
  'core/sessions/entrance.ts createEntrance': 'the ways into a session, over the restores that run',
  'core/sessions/memory-event-store.ts createMemoryEventStore': 'the methods of a slot over one map and its bounds',
  'core/sessions/memory-session-store.ts createMemorySessionStore': 'the methods of a slot over one map',
  'core/sessions/registry.ts createSessionRegistry': 'every session of this node: counts and timers hold for all',
  'core/sessions/session-streams.ts createSessionStreams': 'the kinds of stream over the same readers and writers',
  'plugins/families/issuer-keys/issuer-keys.ts createIssuerKeys':
    'one key set, the fetch that runs, and when the next may',
  'plugins/auth-jwt/verify-token.ts createVerifier': 'the steps of one check over one profile and what it remembers',
  'plugins/change-bus-redis/bus.ts createBus': 'the methods of a slot over one reader and its place',
  'plugins/change-bus-redis/peers.ts createPeers': 'the methods of a slot over one inbox and the sign of life',
  'plugins/event-store-redis/store.ts createRedisEventStore': 'the methods of a slot over one connection',
  'plugins/families/per-request/listen.ts addListen': 'the streams that are open, which draining ends',
  'plugins/transport-stdio/line.ts serveLine': 'the steps of one line over its session and what runs beside it',
  'plugins/transport-stdio/own-requests.ts createOwnRequests': 'the requests that run, and the steps of one of them',
  'plugins/transport-streamable/per-request.ts createPerRequest': 'the steps of one endpoint over one exchange',
  'plugins/transport-streamable/session-get.ts createSessionGets': 'the steps of two endpoints over the same sessions',
  'plugins/transport-streamable/session-post.ts createSessionPosts': 'the steps of one endpoint over the same sessions',
}

interface Diagnostic {
  readonly location: { readonly path: string; readonly start: { readonly line: number } }
}

/** The name that the line declares where a function begins. */
function nameOf({ path, start }: Diagnostic['location']): string {
  const line = readFileSync(join(ROOT, path), 'utf8').split('\n')[start.line - 1] ?? ''
  const [, name] =
    /(?:function\*? |const |let )(\w+)/.exec(line) ?? /^\s*(?:async |static |get )*([\w#]+)/.exec(line) ?? []
  return `${path} ${name ?? `line ${start.line}`}`
}

/** Of the functions in these folders, `path name` of each that has more than 50 lines. */
function findLong(): string[] {
  const biome = createRequire(import.meta.url).resolve('@biomejs/biome/bin/biome')
  const args = ['lint', `--only=complexity/${RULE}`, '--max-diagnostics=none', '--reporter=json', ...FOLDERS]
  // It says on stderr that its JSON may change.
  const told = execFileSync(process.execPath, [biome, ...args], { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' })
  const { diagnostics } = JSON.parse(told) as { diagnostics: Diagnostic[] }
  return diagnostics.map(({ location }) => nameOf(location))
}

describe('Functions over 50 lines', () => {
  let long: string[]
  before(() => {
    long = findLong()
  })

  it('are listed in this test with a reason', () => {
    expect(long.filter(name => LONG[name] === undefined)).to.deep.equal([])
  })

  it('match the list: entries of shorter functions are removed', () => {
    expect(Object.keys(LONG).filter(name => !long.includes(name))).to.deep.equal([])
  })
})
