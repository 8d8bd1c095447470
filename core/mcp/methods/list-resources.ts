// `resources/list`: the resources of the view, then what `list` of each template returns for the caller.
import { attributionOf, errorText } from '../../http/describe-thrown.ts'
import { getOrCreate } from '../../http/get-or-create.ts'
import { requestIdIn } from '../../http/request-target.ts'
import type { Call } from '../calls/call.ts'
import { type HandlerSettings, runHandler } from '../calls/context.ts'
import { convertResult } from '../calls/results.ts'
import { MAX_LIST_TIME, MAX_LISTED, MAX_LISTED_ENTRY, MAX_LISTED_PAGE, shown } from '../client-limits.ts'
import type { ResourceItem } from '../definitions/catalog.ts'
import type { ListTail, View } from '../routes/view.ts'
import { isObject } from '../wire/message.ts'
import { findResource } from './resources.ts'

interface Candidate {
  readonly item: ResourceItem
  readonly entry: Readonly<Record<string, unknown>>
  readonly uri: string
}

const isText = (value: unknown) => typeof value === 'string'
const MEMBERS: Readonly<Record<string, readonly [isValid: (value: unknown) => boolean, expected: string]>> = {
  title: [isText, 'a string'],
  description: [isText, 'a string'],
  mimeType: [isText, 'a string'],
  size: [value => Number.isFinite(value), 'a number'],
  annotations: [isObject, 'an object'],
  icons: [Array.isArray, 'an array'],
  _meta: [isObject, 'an object'],
}

function wireOf(view: View, { item, entry, uri }: Candidate): Record<string, unknown> {
  const owner = findResource(view, uri)?.item
  if (owner === undefined) throw new TypeError(`the URI does not match the template ${item.key}`)
  if (owner !== item) throw new TypeError(`the URI belongs to resource "${shown(owner.definition.name)}"`)
  const { name } = entry
  if (!isText(name)) throw new TypeError('`name` must be a string')
  const wire: Record<string, unknown> = { uri, name }
  for (const [member, [isValid, expected]] of Object.entries(MEMBERS)) {
    const value = entry[member] ?? (member === 'mimeType' ? item.definition.mimeType : undefined)
    if (value === undefined || value === null) continue
    if (!isValid(value)) throw new TypeError(`\`${member}\` must be ${expected}`)
    wire[member] = value
  }
  return wire
}

function createListLog({ log }: HandlerSettings, call: Call) {
  const { offer, headers } = call
  const refused = new Map<ResourceItem, { readonly uri: string | undefined; readonly why: string; count: number }>()
  const fieldsOf = ({ definition, key }: ResourceItem) => {
    return { resource: definition.name, uriTemplate: key, route: offer.route.path, requestId: requestIdIn(headers) }
  }
  return {
    fail(item: ResourceItem, err: unknown) {
      if (call.cancelled) return
      log.error({ code: 'MH1604', err, ...attributionOf(err), ...fieldsOf(item) }, 'a resource list failed')
    },
    cut(item: ResourceItem, entries: number) {
      const fields = { ...fieldsOf(item), entries, limit: MAX_LISTED }
      log.warn({ code: 'MH1605', ...fields }, 'a resource list has too many entries: the rest is not listed')
    },
    refuse(item: ResourceItem, uri: string | undefined, why: string) {
      getOrCreate(refused, item, () => ({ uri: uri && shown(uri), why, count: 0 })).count++
    },
    logRefused() {
      for (const [item, entries] of refused) {
        const fields = { ...fieldsOf(item), ...entries }
        log.warn({ code: 'MH1606', ...fields }, 'entries of a resource list are invalid and not listed')
      }
    },
  }
}
type ListLog = ReturnType<typeof createListLog>

async function runList(call: Call, settings: HandlerSettings, item: ResourceItem, log: ListLog): Promise<Candidate[]> {
  const { definition } = item
  try {
    const { timeout = MAX_LIST_TIME, ...others } = settings.limits.of(item)
    const limits = { ...others, timeout: Math.min(timeout, MAX_LIST_TIME) }
    const returned: unknown = await runHandler(call, item, settings, ctx => definition.list?.(ctx), limits)
    const listed = convertResult((): unknown[] => {
      if (Array.isArray(returned)) return returned
      throw new TypeError('`list` must return an array')
    })
    if (listed.length > MAX_LISTED) log.cut(item, listed.length)
    return listed.slice(0, MAX_LISTED).flatMap(entry => {
      if (isObject(entry) && typeof entry['uri'] === 'string') return { item, entry, uri: entry['uri'] }
      log.refuse(item, undefined, '`uri` must be a string')
      return []
    })
  } catch (error) {
    log.fail(item, error)
    return []
  }
}

const MAX_REFUSED = 100

function tailOf(view: View, candidates: readonly Candidate[], log: ListLog): ListTail {
  const sorted = candidates.toSorted((a, b) => (a.uri < b.uri ? -1 : a.uri > b.uri ? 1 : 0))
  return (after, room) => {
    const entries: object[] = []
    let last = after
    let bytes = 0
    let refused = 0
    let lastRefused = ''
    for (const candidate of sorted) {
      if (candidate.uri <= last) continue
      if (entries.length === room) return { entries, last }
      // Continues through all entries with this URI: another template can have a valid one.
      if (refused >= MAX_REFUSED && candidate.uri > lastRefused) return { entries, last: lastRefused }
      try {
        const wire = wireOf(view, candidate)
        const size = Buffer.byteLength(JSON.stringify(wire))
        if (size > MAX_LISTED_ENTRY) throw new TypeError(`the entry has more than ${MAX_LISTED_ENTRY} bytes of JSON`)
        bytes += size
        if (bytes > MAX_LISTED_PAGE) return { entries, last }
        entries.push(wire)
        last = candidate.uri
      } catch (error) {
        log.refuse(candidate.item, candidate.uri, errorText(error))
        refused++
        lastRefused = candidate.uri
      }
    }
    return { entries, last: undefined }
  }
}

export async function listResources(call: Call, settings: HandlerSettings): Promise<object> {
  const { view, rules } = call
  const { cursor } = call.params
  if (view.listing.length === 0) return view.page('resources', cursor, rules)
  const log = createListLog(settings, call)
  const lists = await Promise.all(view.listing.map(item => runList(call, settings, item, log)))
  const page = view.page('resources', cursor, rules, tailOf(view, lists.flat(), log))
  log.logRefused()
  return page
}
