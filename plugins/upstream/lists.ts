// Reads all lists of a server. Rejects if one of them cannot be read completely.
import { isObject } from '../../core/plugin.ts'
import type { Connection } from '../../remote/index.ts'

export type Item = Readonly<Record<string, unknown>>

/** The lists of a server. */
export interface Snapshot {
  readonly tools: readonly Item[]
  readonly resources: readonly Item[]
  readonly resourceTemplates: readonly Item[]
  readonly prompts: readonly Item[]
  /** Instructions for the model. */
  readonly instructions?: string | undefined
}

/** Maximum pages of one list. */
const MAX_PAGES = 1_000
const MAX_ITEMS = 10_000
/** Maximum characters of a list's JSON. */
export const MAX_TEXT = 4 * 1_024 * 1_024

type ListName = Exclude<keyof Snapshot, 'instructions'>

const METHODS: Readonly<Record<ListName, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  prompts: 'prompts/list',
}

const KEYS = { tools: 'name', resources: 'uri', resourceTemplates: 'uriTemplate', prompts: 'name' } as const

/** Removes a name or URI that is not a string. Items without a name or URI are left out. */
function validItem(item: Item, list: ListName): Item {
  const key = KEYS[list]
  return typeof item[key] === 'string' ? item : { ...item, [key]: undefined }
}

async function readList(
  connection: Pick<Connection, 'request'>,
  list: ListName,
  { max, timeout, signal }: { readonly max: number; readonly timeout: number; readonly signal: AbortSignal },
): Promise<readonly Item[]> {
  const method = METHODS[list]
  const items: Item[] = []
  const cursors = new Set<unknown>()
  let size = 0
  let cursor: unknown
  for (let page = 0; page < MAX_PAGES; page++) {
    const onText = (text: string) => {
      size += text.length
    }
    const options = { timeout, signal, onText, maxResult: MAX_TEXT }
    const result = await connection.request(method, cursor === undefined ? {} : { cursor }, options)
    const entries = result[list]
    if (!Array.isArray(entries)) throw new Error(`the result of ${method} does not contain \`${list}\``)
    items.push(...entries.filter(isObject).map(item => validItem(item, list)))
    if (items.length > max) throw new Error(`${method} has more than ${max} items`)
    if (size > MAX_TEXT) throw new Error(`${method} has more than ${MAX_TEXT} characters`)
    cursor = result['nextCursor'] ?? undefined
    if (cursor === undefined) return items
    if (cursors.has(cursor)) throw new Error(`${method} repeats the cursor of an earlier page`)
    cursors.add(cursor)
  }
  throw new Error(`${method} has more than ${MAX_PAGES} pages`)
}

/** Rejects above the limits, and with a `RemoteError`. */
export async function readLists(
  connection: Pick<Connection, 'request' | 'capabilities' | 'instructions'>,
  limits: { readonly maxTools: number; readonly timeout: number; readonly signal: AbortSignal },
): Promise<Snapshot> {
  const { capabilities, instructions } = connection
  const { maxTools, ...common } = limits
  const read = async (list: ListName, has: unknown, max = MAX_ITEMS) =>
    has === undefined ? [] : readList(connection, list, { ...common, max })
  const tools = await read('tools', capabilities.tools, maxTools)
  const resources = await read('resources', capabilities.resources)
  // Some servers with resources do not support this method.
  const resourceTemplates = await read('resourceTemplates', capabilities.resources).catch((error: unknown) => {
    if (isObject(error) && error['code'] === -32_601) return []
    throw error
  })
  const prompts = await read('prompts', capabilities.prompts)
  return { tools, resources, resourceTemplates, prompts, instructions: instructions || undefined }
}
