// Writes an audit trail: a line for each executed or refused request, in a chain that reveals changes.
import { attributeError, type ToolItem } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import { definePlugin, type InternalHost, nearest, type Services } from '../../core/internal.ts'
import { type CallRecord, isObject, StartError } from '../../core/plugin.ts'
import { operatorActions } from '../families/operator-actions/index.ts'
import { stamped } from './chain.ts'
import { entryOf, isSessionEnd } from './entry.ts'
import { type AuditOptions, type FilledAuditOptions, OPTIONS } from './options.ts'
import type { Trail } from './trail.ts'
import { trailOf } from './trail-of.ts'

export type { AuditOptions } from './options.ts'

/** Keywords with which `properties` does not list all arguments. */
const ELSEWHERE = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas']

function argumentsOf({ wire }: ToolItem): readonly string[] | undefined {
  const schema = wire['inputSchema']
  if (!isObject(schema) || ELSEWHERE.some(keyword => keyword in schema)) return undefined
  const { properties, additionalProperties } = schema
  if (isObject(properties)) return Object.keys(properties)
  return additionalProperties === false ? [] : undefined
}

function lintArguments(
  listed: ReadonlyMap<string, readonly string[]>,
  host: Pick<InternalHost, 'config' | 'routes' | 'report'>,
  services: Services,
): void {
  const tools = host.routes
    .flatMap(route => services.reachableItemsOf(route))
    .flatMap(item => (item.kind === 'tools' ? item : []))
  const keys = tools.map(({ key }) => key)
  const warn = (what: string, at: readonly string[]) =>
    host.report(new StartError('MH2204', what, { at: [...host.config.at, 'arguments', ...at] }), 'warning')
  for (const [tool, names] of listed) {
    const found = tools.filter(({ key }) => key === tool)
    if (found.length === 0) {
      const near = nearest(tool, keys)
      if (near === undefined && !services.hasStaticItems()) continue
      warn(`no tool with this name is defined at startup: its arguments are not written${hintOf(near)}`, [tool])
      continue
    }
    const taken = found.map(argumentsOf)
    if (taken.includes(undefined)) continue
    const known = taken.flatMap(one => one ?? [])
    for (const name of names) {
      if (known.includes(name)) continue
      warn(`the tool has no argument "${name}": nothing is written${hintOf(nearest(name, known))}`, [tool])
    }
  }
}

const hintOf = (near: string | undefined) => (near === undefined ? '' : `; did you mean "${near}"?`)

const NO_KEY =
  'the audit has no key without `secrets`: anyone who can write the file can forge a valid chain; ' +
  'put a secret into the config, or into MCP_HOST_SECRETS'

/** Requests refused because the audit cannot be written; they are counted, but not written. */
const rejected = new WeakSet<object>()

function refuseUnwritten(host: InternalHost, trail: () => Trail | undefined, isLeftOut: (method: string) => boolean) {
  host.onCall((call, next) => {
    const failure = trail()?.failure
    if (failure === undefined || isLeftOut(call.method)) return next()
    trail()?.countRefused()
    const detail = 'calls cannot be recorded at the moment; try again'
    const reason = `the audit: ${failure}`
    const error = new HostError('unavailable', { detail, headers: { 'Retry-After': '2' }, reason })
    rejected.add(error)
    attributeError(error, host.name)
    throw error
  })
  const [, at = ''] = host.config.at
  const name = host.config.at[0] === 'plugins' ? host.name : `${host.name} ${at}`
  host.readiness(name, () => {
    const failure = trail()?.failure
    return failure === undefined || `the audit cannot be written: ${failure}`
  })
}

/** Outcomes that are not written for methods in `leaveOut`. */
const WELL: ReadonlySet<string> = new Set(['ok', 'input_required', 'cancelled'])

const isWritten = ({ call, outcome, http, session }: CallRecord, leftOut: ReadonlySet<string>): boolean => {
  if (!call) return outcome === 'refused' || isSessionEnd({ outcome, http, session })
  return !leftOut.has(call.method) || !WELL.has(outcome)
}

function setup(host: InternalHost, options: FilledAuditOptions) {
  const { onFailure, leaveOut, subjects } = options
  const leftOut: ReadonlySet<string> = new Set(leaveOut)
  const { current, refusals } = trailOf(host, options)
  if (host.ownKeys) host.report(new StartError('MH2205', NO_KEY, { at: host.config.at }), 'warning')
  if (onFailure === 'refuse') refuseUnwritten(host, current, method => leftOut.has(method))
  const listed = new Map(Object.entries(options.arguments))
  host.onReady(() => lintArguments(listed, host, host.services))
  const routes = new Map(host.routes.map(route => [route.path, route]))
  const settings = {
    clear: subjects === 'clear',
    arguments: listed,
    isKnown(path: string | undefined, kind: string, name: string) {
      const route = routes.get(path ?? '')
      const items = route ? host.services.reachableItemsOf(route) : []
      return items.some(item => item.kind === kind && item.key === name)
    },
  }
  if (host.config.at[0] === 'plugins') {
    operatorActions(host).add(done => current()?.push(stamped({ event: 'console', ...done })))
  }
  host.onFinish(record => {
    if (record.error && rejected.has(record.error)) return
    if (isWritten(record, leftOut) && !refusals.count(record)) current()?.push(entryOf(record, settings))
  })
}

export const audit = definePlugin<AuditOptions, FilledAuditOptions>({
  options: OPTIONS,
  setup,
})
