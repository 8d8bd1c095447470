// Screen 4: the items that callers see and can call at a path, and the configured items of all routes.
import { createHmac, randomBytes } from 'node:crypto'
import type { User } from '../../core/index.ts'
import type { InternalHost, Operator } from '../../core/internal.ts'
import { type CatalogItem, errorText, HostError, isObject } from '../../core/plugin.ts'
import {
  type AccessCell,
  type AccessMatrix,
  type AccessRow,
  type Caller,
  type ItemKind,
  type SurfaceItem,
  shellWord,
} from './api.ts'
import { ApiFailure } from './server.ts'

type InspectedRoute = NonNullable<ReturnType<Operator['inspect']>>

const MAX_CALLERS = 16
const MAX_PATH = 1_024
const BASE = 'http://host.invalid'
const MAX_TOKEN = 16_384
const MAX_NAMES = 32

/** Creates opaque handles for session and task ids. Nodes with the same secrets create the same handles. */
export function createHandles({ config }: InternalHost) {
  const [key = randomBytes(32)] = config.keys('console handles')
  return (id: string): string => createHmac('sha256', key).update(id).digest('base64url').slice(0, 22)
}

export function inspectRoute(operator: Operator, path: unknown): InspectedRoute {
  // URLs, and paths such as `//other.example`, would lead to another server.
  const isLocal =
    typeof path === 'string' &&
    path.startsWith('/') &&
    path.length <= MAX_PATH &&
    URL.canParse(path, BASE) &&
    new URL(path, BASE).origin === BASE
  if (!isLocal) throw new ApiFailure(400, 'bad_request', 'Set `path`.')
  const inspected = operator.inspect(path)
  if (!inspected) throw new ApiFailure(404, 'not_found', 'No route serves this path.')
  return inspected
}

const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) &&
  value.length <= MAX_NAMES &&
  value.every(name => typeof name === 'string' && name.length <= 256)

export function readCaller(value: unknown): Caller {
  if (!isObject(value)) throw new ApiFailure(400, 'bad_request', 'A caller must be an object.')
  const { label, roles, scopes, token } = value
  const isText = (text: unknown, max: number) =>
    text === undefined || (typeof text === 'string' && text.length > 0 && text.length <= max)
  const isValid =
    isText(label, 256) &&
    isText(token, MAX_TOKEN) &&
    (roles === undefined || isNames(roles)) &&
    (scopes === undefined || isNames(scopes))
  if (!isValid) throw new ApiFailure(400, 'bad_request', 'Invalid `label`, `token`, `roles` or `scopes`.')
  return value as Caller
}

/** Names of scopes and roles in the access rules of the config. */
function collectNames(value: unknown, found: Record<'scopes' | 'roles', Set<string>>, depth = 0): void {
  if (depth > 8 || typeof value !== 'object' || value === null) return
  for (const [key, part] of Object.entries(value)) {
    const into = /^scopes?$/.test(key) ? found.scopes : /^roles?$/.test(key) ? found.roles : undefined
    const names = into ? [part].flat().filter(name => typeof name === 'string') : []
    for (const name of names) into?.add(name)
    if (names.length === 0) collectNames(part, found, depth + 1)
  }
}

/** The callers of the config: anonymous, any user, and one for each scope and role. */
function defaultCallers({ config }: Operator, inspected: InspectedRoute): Caller[] {
  const found = { scopes: new Set<string>(), roles: new Set<string>() }
  collectNames(inspected.route.authorize, found)
  const { plugins } = config as { readonly plugins?: Readonly<Record<string, unknown>> }
  collectNames(plugins?.['tool-policy'], found)
  const all: Caller[] = [
    { label: 'anonymous' },
    { label: 'any user', scopes: [], roles: [] },
    ...[...found.scopes].map(scope => ({ label: `scope ${scope}`, scopes: [scope] })),
    ...[...found.roles].map(role => ({ label: `role ${role}`, roles: [role] })),
  ]
  return all.slice(0, MAX_CALLERS)
}

/** An example user with the roles and scopes of a caller. */
export const toUser = ({ scopes = [], roles = [] }: Caller): User => ({ subject: 'example', scopes, roles, claims: {} })

/** The refusal for an error that a plugin threw. */
const failure = (error: unknown) => ({
  status: 500,
  reason: `A plugin threw an error: ${errorText(error).slice(0, 256)}`,
})

interface AuthenticatedCaller {
  readonly user: User | undefined
  readonly token?: string
  readonly refused?: AccessRow['refused']
}

async function authenticate(inspected: InspectedRoute, caller: Caller): Promise<AuthenticatedCaller> {
  const { token, scopes, roles } = caller
  if (token === undefined) return { user: scopes || roles ? toUser(caller) : undefined }
  if (inspected.authenticators.length === 0) {
    return { user: undefined, token: 'Ignored: no plugin of this route authenticates callers.' }
  }
  try {
    const user = await inspected.identify(`Bearer ${token}`)
    return { user, token: user ? 'Verified.' : 'No plugin accepted it.' }
  } catch (error) {
    if (!HostError.is(error)) return { user: undefined, refused: failure(error) }
    const reason = error.detail ?? error.message
    return { user: undefined, token: `Refused: ${reason}`, refused: { status: error.status, reason } }
  }
}

function readCell(inspected: InspectedRoute, item: CatalogItem, user: User | undefined): AccessCell {
  const denial = inspected.denialOf(item, user)
  if (denial) return { state: denial.listed ? 'denied' : 'hidden', reason: denial.reason }
  const unlisted = inspected.unlistedBy(item)
  if (typeof unlisted === 'string') return { state: 'hidden', reason: unlisted }
  return { state: unlisted ? 'unlisted' : 'allowed' }
}

function toCell(inspected: InspectedRoute, item: CatalogItem, user: User | undefined): AccessCell {
  try {
    return readCell(inspected, item, user)
  } catch (error) {
    return { state: 'error', reason: failure(error).reason }
  }
}

function findRefusal(inspected: InspectedRoute, user: User | undefined): AccessRow['refused'] {
  try {
    const denial = inspected.authorize(user)
    return denial && { status: inspected.refusal(denial, user).status, reason: denial.reason }
  } catch (error) {
    return failure(error)
  }
}

async function rowOf(inspected: InspectedRoute, caller: Caller): Promise<AccessRow> {
  const { user, token, refused: refusedToken } = await authenticate(inspected, caller)
  const refused = refusedToken ?? findRefusal(inspected, user)
  const { token: _, ...known } = caller
  const label = known.label ?? (caller.token === undefined ? 'anonymous' : 'token')
  return {
    label,
    caller: { ...known, label },
    ...(token !== undefined && { token }),
    ...(refused && { refused }),
    cells: inspected.items.map(item =>
      refused
        ? { state: refused.status === 500 ? 'error' : 'denied', reason: refused.reason }
        : toCell(inspected, item, user),
    ),
  }
}

export async function readAccess(operator: Operator, path: unknown, callers: unknown): Promise<AccessMatrix> {
  const inspected = inspectRoute(operator, path)
  if (callers !== undefined && (!Array.isArray(callers) || callers.length > MAX_CALLERS)) {
    throw new ApiFailure(400, 'bad_request', `\`callers\` must be a list of at most ${MAX_CALLERS} callers.`)
  }
  const identities = callers === undefined ? defaultCallers(operator, inspected) : callers.map(readCaller)
  const hasHook = 'configureSession' in operator.config
  return {
    path: path as string,
    route: inspected.route.path,
    items: inspected.items.map(({ kind, key }) => ({ kind, name: key })),
    callers: await Promise.all(identities.map(caller => rowOf(inspected, caller))),
    notes: hasHook ? ['`configureSession` can change the result for a caller; it is not evaluated here.'] : [],
    commands: [{ label: 'Explain', command: commandFor(operator, path as string) }],
  }
}

const OPTIONS = { tools: 'tool', prompts: 'prompt', resources: 'resource' } as const

export const programOf = ({ program }: Operator): string => program?.command ?? 'npx mcp-host'

export function commandFor(operator: Operator, path: string, kind?: ItemKind, name?: string): string {
  const item = kind === undefined || name === undefined ? '' : ` --${OPTIONS[kind]} ${shellWord(name)}`
  return `${programOf(operator)} explain --route ${shellWord(path)}${item}`
}

type PlainItem = Omit<SurfaceItem, 'limits' | 'withheld'>

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

/** The reason that an anonymous caller is refused. */
function needsOf(inspected: InspectedRoute, item: CatalogItem): string[] {
  try {
    const denial = inspected.denialOf(item, undefined)
    return denial ? [denial.reason] : []
  } catch (error) {
    return [failure(error).reason]
  }
}

/** The configured items of all routes, read from the running host. */
export function itemsOf(operator: Operator): PlainItem[] {
  return operator.routes.flatMap(({ samplePath, path: route }) => {
    const inspected = operator.inspect(samplePath)
    return (inspected?.items ?? []).map(item => {
      const { kind, key, wire } = item
      const [title, description] = [textOf(wire['title']), textOf(wire['description'])]
      return {
        path: samplePath,
        route,
        kind,
        template: kind === 'resources' && item.template !== undefined,
        name: key,
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description }),
        shown: wire,
        needs: inspected ? needsOf(inspected, item) : [],
        listed: inspected?.unlistedBy(item) === false,
      }
    })
  })
}

/** Adds the limits of each item, as text, and why a tool is withheld. */
export function withDetails(operator: Operator, items: readonly PlainItem[]): SurfaceItem[] {
  const routes = new Map(items.map(({ path }) => [path, operator.inspect(path)] as const))
  return items.map(item => {
    const inspected = routes.get(item.path)
    const found = inspected?.items.find(({ kind, key }) => kind === item.kind && key === item.name)
    const withheld = found && inspected?.unlistedBy(found)
    const limits = found ? [...(inspected?.explainPlugins(found) ?? [])] : []
    return { ...item, limits, ...(typeof withheld === 'string' && { withheld }) }
  })
}
