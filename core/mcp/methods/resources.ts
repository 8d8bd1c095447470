// `resources/read`: finds a listed resource, or the first matching template.

import { HostError } from '../../http/errors.ts'
import type { User } from '../../kernel/user.ts'
import type { Call, Offer } from '../calls/call.ts'
import { type HandlerSettings, runHandler } from '../calls/context.ts'
import { afterHandler, throwFailure } from '../calls/handler-outcome.ts'
import { convertResult, resourceResult } from '../calls/results.ts'
import { checkUri, MAX_URI } from '../client-limits.ts'
import type { ResourceItem } from '../definitions/catalog.ts'
import type { ResourceDefinition, ResourceReturn } from '../definitions/define.ts'
import { normalUri } from '../normal-uri.ts'
import type { View } from '../routes/view.ts'
import { resultTypeOf } from '../wire/message.ts'
import { paramsOf } from './params.ts'

/** Finds a resource by URI equivalence (RFC 3986 section 6.2.2). `uri`: the requested URI, if a template matched. */
export function findResource(
  view: View,
  uri: string,
): { item: ResourceItem; variables: Record<string, string>; uri: string } | undefined {
  const exact = view.resources.get(uri)
  if (exact) return { item: exact, variables: {}, uri }
  if (uri.length > MAX_URI) return undefined
  const normal = normalUri(uri)
  const item = view.resourcesByNormalUri.get(normal)
  if (item) return { item, variables: {}, uri: item.key }
  for (const item of view.templates) {
    const variables = item.template?.match(uri)
    if (variables) return { item, variables, uri }
  }
  for (const item of view.templates) {
    const variables = item.normalTemplate?.match(normal)
    if (variables) return { item, variables, uri }
  }
  return undefined
}

/** Finds a resource that callers of a view can subscribe to, which requires read access. */
export function findSubscribable(view: View, uri: string): ReturnType<typeof findResource> {
  const found = findResource(view, uri)
  return found && view.denialOf(found.item) === undefined ? found : undefined
}

/** Checks whether a user can subscribe to a resource in the current view. False if the view cannot be built. */
export function canSubscribeNow(offer: Pick<Offer, 'viewFor'>, user: User | undefined, uri: string): boolean {
  try {
    return findSubscribable(offer.viewFor(user), uri) !== undefined
  } catch (error) {
    if (HostError.is(error)) return false
    throw error
  }
}

export function readResource(call: Call, settings: HandlerSettings): object | Promise<object> {
  const { uri: requested } = paramsOf(call, 'resources/read')
  checkUri(requested)
  const found = findResource(call.view, requested)
  if (!found) throw new HostError('resourceNotFound', { data: { uri: requested } })
  const { uri } = found
  settings.authorize(call, found.item)
  const { definition } = found.item
  return afterHandler(
    () => runHandler(call, found.item, settings, ctx => definition.handler({ ...found.variables, uri }, ctx)),
    value => finish(call, value, uri, definition),
    throwFailure,
  )
}

function finish(call: Call, value: unknown, uri: string, definition: ResourceDefinition): object {
  if (resultTypeOf(value)) return value as object
  if (value === undefined || value === null) throw new HostError('resourceNotFound', { data: { uri } })
  const result = convertResult(() => resourceResult(value as ResourceReturn, uri, definition.mimeType))
  // Contents can change at any time and depend on the caller (server/utilities/caching).
  return call.modern ? { ttlMs: 0, cacheScope: 'private', ...result } : result
}
