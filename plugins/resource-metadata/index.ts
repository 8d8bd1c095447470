// Protected resource metadata (RFC 9728), and the slot `protectedResource`.
import koaCors from '@koa/cors'
import { isLoopback } from '../../core/auth.ts'
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import { type Endpoint, type HostContext, type HostMiddleware, type Route, StartError } from '../../core/plugin.ts'
import { createDPoP, documentPaths, documentUrl, onlyDocument, resourcePaths } from './documents.ts'
import {
  describeResource,
  type FilledResourceMetadata,
  optionsSchema,
  type ResourceMetadataOptions,
} from './options.ts'

export type { ResourceMetadataOptions } from './options.ts'

/** The documents are public: clients in browsers read them first. */
const openToPages: HostMiddleware = koaCors({ origin: '*', allowMethods: ['GET'], keepHeadersOnError: false })

const isLoopbackUrl = (url: string) => isLoopback(new URL(url).hostname)

/** Returns published features that no plugin of this host implements. */
const unchecked = ({
  tlsClientCertificateBoundAccessTokens: bound,
  bearerMethodsSupported: methods,
}: FilledResourceMetadata) =>
  Object.entries({
    ...(bound && { tlsClientCertificateBoundAccessTokens: bound }),
    ...(methods.some(method => method !== 'header') && { bearerMethodsSupported: methods }),
  })

function checkOptions({ config: { at, http, purpose }, log, report }: InternalHost, options: FilledResourceMetadata) {
  const fail = (what: string, ...key: (string | number)[]) => new StartError('MH2040', what, { at: [...at, ...key] })
  const { resource, authorizationServers = [], resourceMetadataUri } = options
  for (const [name, value] of unchecked(options)) {
    log.warn({ code: 'MH2042', [name]: value }, `${name} is published, but this host does not implement it`)
  }
  if (http.publicUrl === undefined && !isLoopback(http.host)) {
    report(fail(`set http.publicUrl: the metadata documents contain the URL for clients, which ${http.host} is not`))
  }
  if (resourceMetadataUri !== undefined && resource === undefined) {
    report(fail('it needs `resource`; one document can describe one resource only', 'resourceMetadataUri'))
  }
  if (purpose === 'inspect' && resource !== undefined && http.publicUrl !== undefined) {
    const { origin } = new URL(http.publicUrl)
    const why = `clients that reach this host at ${origin} refuse metadata for a resource on another origin; remove this option`
    if (new URL(resource).origin !== origin) report(fail(why, 'resource'), 'warning')
  }
  if (resource?.startsWith('http:') && !isLoopbackUrl(resource)) {
    report(fail(`${resource} must be an https URL (RFC 9728 section 1.2)`, 'resource'))
  }
  for (const [index, server] of authorizationServers.entries()) {
    if (process.env['NODE_ENV'] !== 'production' || !server.startsWith('http:') || isLoopbackUrl(server)) continue
    const why = `${server} is not https: anyone on the network path could issue tokens; use https`
    report(fail(why, 'authorizationServers', index))
  }
  if (http.publicUrl?.startsWith('http:') && !isLoopbackUrl(http.publicUrl)) {
    log.warn(
      { code: 'MH2043', publicUrl: http.publicUrl },
      'http.publicUrl is not https: anyone on the network path can read the tokens',
    )
  }
}

type Describe = (routes: readonly Route[]) => ResourceMetadataOptions

/** The default is this host, whose issuer can be unknown before it listens. Reports routes without an issuer. */
function describeServers(host: InternalHost, options: FilledResourceMetadata): Describe {
  if (options.authorizationServers) return () => options
  const serverOn = (route: Route) => host.services.slot('authorizationServer', route)
  host.onReady(() => {
    const withoutIssuer = host.routes.filter(route => serverOn(route).keys().length === 0)
    if (withoutIssuer.length === 0) return
    const where =
      withoutIssuer.length === host.routes.length
        ? ''
        : ` for ${withoutIssuer.map(({ path }) => `routes['${path}']`).join(', ')}`
    const why = `missing${where}; set the authorization servers, such as ["https://login.acme.example"], or enable auth-bridge`
    host.report(new StartError('MH2041', why, { at: [...host.config.at, 'authorizationServers'] }))
  })
  return routes => {
    const found = new Set(routes.flatMap(route => serverOn(route).issuer() ?? []))
    // An empty list is not allowed (RFC 9728 section 3.2).
    return found.size === 0 ? options : { ...options, authorizationServers: [...found] }
  }
}

function createEndpoint(get: (ctx: HostContext) => object): Endpoint {
  return {
    public: true,
    cors: openToPages,
    methods: {
      GET(ctx) {
        ctx.body = get(ctx)
      },
    },
  }
}

function serveDocuments(host: InternalHost, options: ResourceMetadataOptions, get: Describe) {
  const { resource, resourceMetadataUri } = options
  const theOne = resource === undefined ? undefined : createEndpoint(() => describeResource(resource, get(host.routes)))
  if (theOne && resourceMetadataUri !== undefined) {
    const { path, url } = onlyDocument(resourceMetadataUri, host.config.http)
    if (path !== undefined) host.endpoint(path, theOne)
    else
      host.log.info(
        { code: 'MH2044', url: resourceMetadataUri },
        'the metadata document is on another host, which must serve it',
      )
    return url
  }
  for (const route of host.routes) {
    const endpoint = theOne ?? createEndpoint(({ state }) => describeResource(route.url(state.params), get([route])))
    const [own, ...others] = documentPaths(route, host.config.http)
    host.endpoint(own, endpoint, { route })
    for (const path of others) host.endpoint(path, endpoint, { route, fallback: true })
  }
  if (theOne && resource !== undefined) {
    for (const path of resourcePaths(resource)) host.endpoint(path, theOne, { fallback: true })
  }
  return (route: Route, params: Readonly<Record<string, string>>) => documentUrl(route, params, host.config.http)
}

export const resourceMetadata = definePlugin<ResourceMetadataOptions, FilledResourceMetadata>({
  options: optionsSchema,
  provides: ['protectedResource'],
  setup(host, options) {
    if (host.routes.length === 0) return
    checkOptions(host, options)
    const [serversOf, bindingOf] = [describeServers(host, options), createDPoP(host, options)]
    const urlOf = serveDocuments(host, options, routes => ({ ...bindingOf(routes), ...serversOf(routes) }))
    host.provide('protectedResource', {
      resourceOf: (route, params) => options.resource ?? route.url(params),
      metadataUrlOf: urlOf,
      scopesOf: () => options.scopesSupported,
      serversOf: () => options.authorizationServers,
    })
  },
})
