// `mcp-host explain`: explains the access decisions for one caller and path. Only the claims of a token are printed.

import { printable, printableLines } from '../client/text.ts'
import type { InspectedAddress } from '../core/access/inspect-access.ts'
import type { ItemKind } from '../core/auth.ts'
import type { Host } from '../core/host.ts'
import { errorText } from '../core/http/errors.ts'
import { HostError, type User } from '../core/index.ts'
import { type CatalogItem, type Denial, isObject, readUser } from '../core/plugin.ts'
import { CONFIG_OPTION, type CommandValues, defineCommand, ENV_FILE_OPTION } from './command.ts'
import { inspectConfig } from './config.ts'
import { readToken, usage } from './context.ts'
import { isoTime, nearestHint, parseObject } from './text.ts'

const OPTIONS = {
  ...CONFIG_OPTION,
  ...ENV_FILE_OPTION,
  route: { value: '<path>', help: 'Route path [/ or the only route]' },
  token: { value: '<token>', help: "The caller's token; @file reads a file, - reads stdin" },
  tool: { value: '<name>', help: 'Explain one tool' },
  prompt: { value: '<name>', help: 'Explain one prompt' },
  resource: { value: '<uri>', help: 'Explain one resource' },
} as const

type ExplainOptions = CommandValues<typeof OPTIONS>

const KINDS: ReadonlyArray<readonly ['tool' | 'prompt' | 'resource', ItemKind]> = [
  ['tool', 'tools'],
  ['prompt', 'prompts'],
  ['resource', 'resources'],
]

const line = (label: string, text: string) => label.padEnd(10) + printableLines(text)

function describeClaims(claims: Readonly<Record<string, unknown>>): string {
  const { exp } = claims
  const until = typeof exp === 'number' ? ` (exp is ${isoTime(exp * 1000) ?? exp})` : ''
  return `${JSON.stringify(claims)}${until}`
}

function describeUser(user: User | undefined): string[] {
  if (!user) return [line('caller', 'anonymous')]
  const { subject, subjectClaim, issuer, clientId, scopes, roles, claims } = user
  const named = subjectClaim === undefined ? '' : ` (by ${subjectClaim})`
  const from = [issuer === undefined ? [] : `issuer ${issuer}`, clientId === undefined ? [] : `client ${clientId}`]
  return [
    line('caller', printable([`subject ${subject}${named}`, ...from.flat()].join(', '))),
    line('scopes', printable(scopes.join(' ')) || 'none'),
    line('roles', printable(roles.join(' ')) || 'none'),
    line('claims', describeClaims(claims)),
  ]
}

/** Authenticates the caller with the config's plugins, otherwise uses the unverified token claims. */
async function identify(
  host: Host,
  address: InspectedAddress,
  token: string | undefined,
  hasTemporaryKeys: boolean,
): Promise<{ lines: readonly string[]; user: User | undefined; refusal?: HostError }> {
  if (token === undefined) return { lines: [line('token', 'none; pass one with --token')], user: undefined }
  if (address.authenticators.length === 0) {
    return { lines: [line('token', 'ignored: no plugin of this route authenticates callers')], user: undefined }
  }
  const claims = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  const read = claims ? [line('claims', describeClaims(claims))] : []
  try {
    await host.start()
    const user = await address.identify(`Bearer ${token}`)
    const verification = user ? "verified by the config's own plugins" : 'no plugin accepted it'
    return { lines: [line('token', verification)], user }
  } catch (error) {
    if (HostError.is(error) && error.kind !== 'unavailable' && !hasTemporaryKeys) {
      const fix = claims ? '' : '; pass the access token that a client sends, which `mcp-host token <url>` prints'
      const lines = [line('token', `refused: ${error.detail ?? error.message}${fix}`), ...read]
      return { lines, user: undefined, refusal: error }
    }
    const { iss } = claims ?? {}
    const user = claims && readUser(claims, typeof iss === 'string' ? iss : '')
    const guess = user ? 'the following steps use its claims unverified' : 'and its claims cannot be read'
    const why = hasTemporaryKeys
      ? 'without `secrets` only the running host has the keys of its tokens'
      : errorText(error)
    const lines = [line('token', `NOT VERIFIED: ${why}; ${guess}`)]
    return { lines: user ? lines : [...lines, ...read], user }
  }
}

function describeRefusal(error: HostError): string {
  const header = error.headers?.['WWW-Authenticate']
  return `${error.status} ${error.message}${header === undefined ? '' : `\n${line('', `WWW-Authenticate: ${header}`)}`}`
}

function findItem({ items }: InspectedAddress, kind: ItemKind, key: string): CatalogItem | undefined {
  const own = items.filter(item => item.kind === kind)
  return own.find(item => item.key === key) ?? own.find(item => item.kind === 'resources' && item.template?.match(key))
}

function explainItem(host: Host, address: InspectedAddress, kind: ItemKind, key: string, user: User | undefined) {
  const label = kind.slice(0, -1)
  const item = findItem(address, kind, key)
  const { sources = [] } = host.routes.find(({ path }) => path === address.route.path) ?? {}
  const reason = sources.map(({ withheld }) => withheld.get(`${kind} ${key}`)).find(found => found !== undefined)
  if (!item && reason !== undefined) {
    return [line(label, `the ${label} "${key}" is not served at this path`), line('result', `left out: ${reason}`)]
  }
  const unknown = sources.flatMap(({ toolset, state, isEmpty }) => (isEmpty ? `${toolset}: ${state}` : []))
  if (!item && unknown.length > 0) {
    const found = `the known items of this path do not include the ${label} "${key}"`
    return [line(label, found), line('result', `unknown: ${unknown.join('; ')}`)]
  }
  if (!item) {
    const keys = address.items.flatMap(other => (other.kind === kind ? other.key : []))
    return [
      line(label, `there is no ${label} "${key}" at this path${nearestHint(key, keys)}`),
      line('result', 'error -32602'),
    ]
  }
  const denial = address.denialOf(item, user)
  const steps = [...address.explain(item, user), ...address.explainPlugins(item)]
  const unlisted = address.unlistedBy(item)
  const listed = (!denial || denial.listed) && unlisted === false ? 'listed' : 'hidden from lists'
  const answer = denial
    ? `denied: ${denial.reason}; ${listed}; ${describeRefusal(address.refusal(denial, user))}`
    : typeof unlisted === 'string'
      ? `withheld, calls fail: ${unlisted}`
      : `allowed, ${listed}`
  return [
    ...steps.map((step, index) => line(index === 0 ? label : '', index === 0 ? `${item.key}: ${step}` : step)),
    line('result', answer),
  ]
}

function listItems({ items, denialOf, unlistedBy }: InspectedAddress, user: User | undefined): string[] {
  function verdict(item: CatalogItem, denial: Denial | undefined) {
    const unlisted = unlistedBy(item)
    if (denial) return `${denial.listed && unlisted === false ? 'listed' : 'hidden'}, denied: ${denial.reason}`
    if (typeof unlisted === 'string') return `withheld, calls fail: ${unlisted}`
    return unlisted ? 'allowed, hidden from lists' : 'allowed'
  }
  return items.map(item => line(item.kind.slice(0, -1), `${item.key}: ${verdict(item, denialOf(item, user))}`))
}

function describeRule({ route }: InspectedAddress): string {
  if (route.authorize === undefined) return 'open to anyone'
  return route.authorize === true ? 'needs any signed-in user' : `authorize ${JSON.stringify(route.authorize)}`
}

function describePlugins(address: InspectedAddress, options: ExplainOptions = {}): string[] {
  const items = KINDS.flatMap(([option, kind]) => {
    const key = options[option]
    return (key === undefined ? undefined : findItem(address, kind, key)) ?? []
  })
  const steps = [...address.explainPlugins(), ...items.flatMap(item => address.explainPlugins(item))]
  return steps.map((step, index) => line(index === 0 ? 'plugins' : '', step))
}

interface ExplainedCaller {
  readonly token?: string | undefined
  /** In place of a token. */
  readonly user?: User
  readonly hasTemporaryKeys?: boolean
}

export async function explainAccess(host: Host, options: ExplainOptions, caller: ExplainedCaller): Promise<string[]> {
  const { configureSession } = host.served.services.offered.now
  const lines = await explainRoute(host, options, caller)
  return configureSession ? [...lines, line('session', HOOK)] : lines
}

async function explainRoute(
  host: Host,
  options: ExplainOptions,
  { token, user: given, hasTemporaryKeys = false }: ExplainedCaller,
): Promise<string[]> {
  const [only, ...others] = host.routes
  const sample = host.routes.find(({ path }) => path === options.route)?.samplePath
  const path = sample ?? options.route ?? (only && others.length === 0 ? only.samplePath : '/')
  const inspected = host.inspect(path)
  if (!inspected) {
    const known = host.routes.map(route => route.path).join(', ')
    throw usage(`nothing is served at ${path}; select a path with --route; available: ${known}`)
  }
  const { lines, user, refusal } = given
    ? { lines: [], user: given, refusal: undefined }
    : await identify(host, inspected, token, hasTemporaryKeys)
  // Authentication starts the host: upstream servers then have their current tools.
  const address = host.inspect(path) ?? inspected
  const output = [
    line('address', `${path}, route ${address.route.path}, toolsets ${address.toolsets.join(', ')}`),
    ...(address.authenticators.length > 1 ? [line('checked by', address.authenticators.join(', then '))] : []),
    ...lines,
  ]
  const limits = describePlugins(address, options)
  if (refusal) return [...output, ...limits, line('result', describeRefusal(refusal))]
  const denial = address.authorize(user)
  output.push(
    ...describeUser(user),
    line('route', `${describeRule(address)}${denial ? `: ${denial.reason}` : ': passed'}`),
  )
  if (denial) return [...output, ...limits, line('result', describeRefusal(address.refusal(denial, user)))]
  output.push(...describePlugins(address))
  const explained = KINDS.flatMap(([option, kind]) => {
    const key = options[option]
    return key === undefined ? [] : explainItem(host, address, kind, key, user)
  })
  return [...output, ...(explained.length > 0 ? explained : listItems(address, user))]
}

function signsWithTemporaryKeys(config: unknown, env: NodeJS.ProcessEnv): boolean {
  if (!isObject(config) || config['secrets'] !== undefined || env['MCP_HOST_SECRETS']) return false
  const { plugins } = config
  return isObject(plugins) && ['dev-auth-server', 'auth-bridge'].some(name => plugins[name])
}

const HOOK = 'configureSession can change the result for this caller; this command does not run it'

export const explainCommand = defineCommand({
  summary: 'Explain, step by step, what a caller can access',
  example: '--route /admin --token @token.txt --tool purge',
  options: OPTIONS,
  async run(options, _positionals, context) {
    const token = await readToken(context, options.token)
    await inspectConfig(options, context, async (host, loaded) => {
      const hasTemporaryKeys = signsWithTemporaryKeys(loaded.config, context.env)
      const lines = await explainAccess(host, options, { token, hasTemporaryKeys })
      context.print(context.runnable(lines.join('\n')))
    })
  },
})
