// The documents themselves: a card says what a client needs to connect, a catalog where the cards are. Nothing of them depends
// on who asks, and nothing lists a tool.
import { createHash } from 'node:crypto'
import koaCors from '@koa/cors'
import type { Endpoint, HostContext, HostMiddleware, Implementation, McpRoute } from '../../core/index.ts'
import { MODERN_REVISION } from '../../core/transport.ts'
import { CARD, identifierOf, knownAddresses, MOST_TEXT, nameAt, type Params } from './addresses.ts'

const CARD_TYPE = 'application/mcp-server-card+json'
const CATALOG_TYPE = 'application/ai-catalog+json'
const CARD_SCHEMA = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json'
const CATALOG_VERSION = '1.0'

/** What one instance of the plugin publishes. */
export interface Published {
  readonly routes: readonly McpRoute[]
  readonly name: string
  readonly description: string | undefined
  /** False: the catalog has the cards themselves. */
  readonly hasCards: boolean
  readonly inCatalog: boolean
}

const cut = (text: string) => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT - 1)}…` : text)

/** Of both transports the newer one, which serves everybody. */
const remoteOf = (url: string, revisions: readonly string[]) =>
  revisions.includes(MODERN_REVISION)
    ? { type: 'streamable-http', url, supportedProtocolVersions: revisions }
    : { type: 'sse', url: `${url}/sse`, supportedProtocolVersions: revisions }

/** The card of an address. */
export function cardOf(published: Published, route: McpRoute, params: Params, server: Implementation) {
  const { version, title, websiteUrl, icons } = server
  const description = published.description ?? server.description ?? title ?? server.name
  return {
    $schema: CARD_SCHEMA,
    name: nameAt(published.name, route, params),
    version,
    description: cut(description),
    ...(title !== undefined && title !== '' && { title: cut(title) }),
    ...(websiteUrl !== undefined && { websiteUrl }),
    ...(icons && { icons }),
    remotes: [remoteOf(route.url(params), route.revisions)],
  }
}

function entriesOf(published: Published, server: Implementation): object[] {
  if (!published.inCatalog) return []
  return published.routes.flatMap(route =>
    knownAddresses(route).map(params => ({
      identifier: identifierOf(nameAt(published.name, route, params)),
      type: CARD_TYPE,
      ...(published.hasCards
        ? { url: `${route.url(params)}${CARD}` }
        : { data: cardOf(published, route, params, server) }),
    })),
  )
}

const catalogOf = (all: readonly Published[], server: Implementation) => ({
  specVersion: CATALOG_VERSION,
  entries: all.flatMap(published => entriesOf(published, server)),
})

/** Whoever asks without an Origin may be a cache in front of pages. */
const openToPages: HostMiddleware = koaCors({
  origin: '*',
  allowMethods: ['GET'],
  allowHeaders: ['Content-Type', 'If-None-Match'],
  exposeHeaders: ['ETag'],
  keepHeadersOnError: false,
})

/** Whether a client has it (RFC 9110 section 13.1.2). Not `ctx.fresh`: pages that ask so say `no-cache`, too. */
const isKnown = (given: string, tag: string) =>
  given.trim() === '*' || given.split(',').some(one => one.trim().replace(/^W\//, '') === tag)

/** Serves a document to anyone. A client that has it already is told so. */
function publicDocument(type: string, make: (ctx: HostContext) => object): Endpoint {
  const answer = (ctx: HostContext) => {
    const text = JSON.stringify(make(ctx))
    const tag = `"${createHash('sha256').update(text).digest('base64url')}"`
    ctx.set({
      'Content-Type': type,
      'Cache-Control': 'public, max-age=3600',
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers': 'ETag',
      ETag: tag,
    })
    ctx.status = 200
    if (isKnown(ctx.get('If-None-Match'), tag)) ctx.status = 304
    else ctx.body = text
  }
  return { public: true, cors: openToPages, methods: { GET: answer, HEAD: answer } }
}

export const cardEndpoint = (published: Published, route: McpRoute, server: () => Implementation): Endpoint =>
  publicDocument(CARD_TYPE, ({ state }) => cardOf(published, route, state.params, server()))

export const catalogEndpoint = (all: readonly Published[], server: () => Implementation): Endpoint =>
  publicDocument(CATALOG_TYPE, () => catalogOf(all, server()))
