// An audit trail: a line for each request that did or read something or was refused, in a chain that reveals changes.
import { blame } from '../../core/auth.ts'
import {
  type CallRecord,
  definePlugin,
  HostError,
  type PluginHost,
  type Services,
  StartError,
} from '../../core/index.ts'
import { entryOf, isSessionEnd } from './entry.ts'
import { lintArguments } from './lint-arguments.ts'
import type { OpenTrail } from './open-trail.ts'
import { type AuditOptions, type FilledAuditOptions, OPTIONS } from './options.ts'
import { trailOf } from './trail-of.ts'

export type { AuditOptions } from './options.ts'

const NO_KEY =
  'the audit has no key, for there are no `secrets`: who can write its file can make a chain that verifies; put a secret into ' +
  'the config, or into MCP_HOST_SECRETS'

/** Refused because the audit cannot be written: counted, but not written. */
const turnedAway = new WeakSet<object>()

/** Refuses calls while the audit cannot be written. */
function refuseUnwritten(host: PluginHost, trail: OpenTrail, isLeftOut: (method: string) => boolean) {
  host.around((call, next) => {
    const { failure } = trail
    if (failure === undefined || isLeftOut(call.method)) return next()
    trail.countRefused()
    const detail = 'what is called cannot be put on record at the moment; try again'
    const reason = `the audit: ${failure}`
    const error = new HostError('unavailable', { detail, headers: { 'Retry-After': '2' }, reason })
    turnedAway.add(error)
    blame(error, host.name)
    throw error
  })
  const [, at = ''] = host.at
  const name = host.at[0] === 'plugins' ? host.name : `${host.name} ${at}`
  host.ready(name, () => (trail.failure === undefined ? true : `the audit cannot be written: ${trail.failure}`))
}

/** Outcomes that are not written for methods in `leaveOut`. */
const WELL: ReadonlySet<string> = new Set(['ok', 'input_required', 'cancelled'])

const isWritten = ({ call, outcome, http, session }: CallRecord, leftOut: ReadonlySet<string>): boolean => {
  if (!call) return outcome === 'refused' || isSessionEnd({ outcome, http, session })
  return !leftOut.has(call.method) || !WELL.has(outcome)
}

function setup(host: PluginHost, options: FilledAuditOptions) {
  const { onFailure, leaveOut, subjects } = options
  const leftOut: ReadonlySet<string> = new Set(leaveOut)
  const { trail, refusals } = trailOf(host, options)
  if (host.ownKeys) host.report(new StartError(NO_KEY, { at: host.at }), 'warning')
  if (onFailure === 'refuse') refuseUnwritten(host, trail, method => leftOut.has(method))
  let services: Services | undefined
  const listed = new Map(Object.entries(options.arguments))
  host.serving(given => {
    services = given
    host.checking(() => lintArguments(listed, host, given))
  })
  const routes = new Map(host.routes.map(route => [route.path, route]))
  const settings = {
    clear: subjects === 'clear',
    arguments: listed,
    isKnown(path: string | undefined, kind: string, name: string) {
      const route = routes.get(path ?? '')
      const items = route ? services?.reachableItemsOf(route) : undefined
      return items?.some(item => item.kind === kind && item.key === name) ?? false
    },
  }
  host.observe(record => {
    if (record.error && turnedAway.has(record.error)) return
    if (isWritten(record, leftOut) && !refusals.count(record)) trail.push(entryOf(record, settings))
  })
}

export const audit = definePlugin<AuditOptions, FilledAuditOptions>({
  options: OPTIONS,
  setup,
})
