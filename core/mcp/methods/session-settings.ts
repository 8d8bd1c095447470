// Session settings: log level and watched resources (2025-11-25 and earlier).

import { HostError } from '../../http/errors.ts'
import type { Call } from '../calls/call.ts'
import type { HandlerSettings } from '../calls/context.ts'
import { checkUri, MAX_WATCHED, MAX_WATCHED_BYTES, MAX_WATCHED_BYTES_PER_OWNER, WATCH_COST } from '../client-limits.ts'
import { paramsOf } from './params.ts'
import { findResource } from './resources.ts'

export const tooManyWatched = () =>
  new HostError('tooManyRequests', {
    detail:
      `a session watches at most ${MAX_WATCHED} resources, with ${MAX_WATCHED_BYTES} bytes of URIs and ${WATCH_COST} for ` +
      `each; all sessions of an owner ${MAX_WATCHED_BYTES_PER_OWNER} bytes. Unsubscribe from some, or end a session`,
  }).withStatus200()

function sessionOf(call: Call) {
  if (!call.session) throw new HostError('methodNotFound', { detail: `${call.method} needs a session` })
  return call.session
}

const kept = (keeping: Promise<void> | undefined): object => keeping?.then(() => ({})) ?? {}

/** 2025-11-25 server/utilities/logging, "Setting Log Level". */
export function setLevel(call: Call): object {
  const session = sessionOf(call)
  session.logLevel = paramsOf(call, 'logging/setLevel').level
  return kept(session.keep({ logLevel: session.logLevel }))
}

function watchedUri(call: Call): string {
  const { uri } = paramsOf(call, 'resources/subscribe')
  checkUri(uri)
  return uri
}

/** 2025-11-25 server/resources, "Subscriptions". */
export function subscribe(call: Call, settings: HandlerSettings): object {
  const session = sessionOf(call)
  const uri = watchedUri(call)
  const found = findResource(call.view, uri)
  if (!found) throw new HostError('resourceNotFound', { data: { uri } })
  settings.authorize(call, found.item)
  if (!session.watch(found.uri)) throw tooManyWatched()
  return kept(session.keep({ watch: found.uri }))
}

export function unsubscribe(call: Call): object {
  const session = sessionOf(call)
  const requested = watchedUri(call)
  const uri = findResource(call.view, requested)?.uri ?? requested
  session.unwatch(uri)
  return kept(session.keep({ unwatch: uri }))
}
