// `mcp-host accept`: reads the tools and prompts of upstream servers, and writes them to the lock file.
import { printable } from '../client/text.ts'
import { LOCK_NAME } from '../core/host.ts'
import type { JsonObject } from '../core/mcp/wire/protocol.ts'
import { withHash } from '../plugins/families/canonical-json/index.ts'
import { isLoginNeeded } from '../plugins/upstream/failures.ts'
import { createLockEntry, type LockEntry } from '../plugins/upstream/lock-entry.ts'
import { isRestrictionLost } from '../plugins/upstream/names.ts'
import type { ServerSettings } from '../plugins/upstream/settings.ts'
import { operatorText } from '../remote/index.ts'
import { type CommandValues, defineCommand } from './command.ts'
import { type CommandContext, readToken, unknownName, usage } from './context.ts'
import { type Change, compareLists } from './lock/compare-surfaces.ts'
import { changesText, impactsText } from './lock/describe-changes.ts'
import { displayName, lockFileOf, lockText, writeLockFile } from './lock/lock-file.ts'
import type { Lock } from './lock/surface.ts'
import { readLockIfThere, SURFACE_OPTIONS, surfaceOfConfig } from './lock.ts'
import { readServerLists, readServerSettings } from './upstream/read-servers.ts'

const OPTIONS = {
  ...SURFACE_OPTIONS,
  'dry-run': { help: 'Print the changes without writing the lock file' },
  token: {
    value: '<token>',
    help: "Access token for the server, in place of the config's credentials; @file reads a file, - reads stdin",
  },
} as const

function withToken(settings: ServerSettings, token: string | undefined): ServerSettings {
  if (token === undefined || !settings.http) return settings
  const others = Object.entries(settings.http.headers).filter(([name]) => name.toLowerCase() !== 'authorization')
  const headers = { ...Object.fromEntries(others), Authorization: `Bearer ${token}` }
  return { ...settings, http: { ...settings.http, auth: undefined, headers } }
}

async function readEntry(settings: ServerSettings, token: string | undefined): Promise<LockEntry> {
  try {
    const { connection, snapshot } = await readServerLists(withToken(settings, token))
    return createLockEntry(snapshot, connection.capabilities.completions !== undefined, settings)
  } catch (cause) {
    const fix = isLoginNeeded(cause) ? '; give an access token of the server with --token' : ''
    const reason = operatorText(cause).replaceAll('\n', '\n  ')
    throw usage(`cannot read the lists of the server "${settings.name}": ${reason}${fix}`, cause)
  }
}

const asItems = (items: LockEntry['tools'] = {}) =>
  Object.fromEntries(
    Object.entries(items).map(([name, item]) => [name, withHash({ needs: [], shown: item as JsonObject })]),
  )

/** Presents the lists of an upstream server as a route, so that surfaces can be compared. */
const asLists = ({ tools, prompts }: Partial<LockEntry> = {}) => {
  return { resources: {}, resourceTemplates: {}, tools: asItems(tools), prompts: asItems(prompts) }
}

/** In a review every addition matters, because models read the text of a new tool. */
const asReviewed = (change: Change): Change =>
  change.impact === 'harmless' && 'after' in change && !('before' in change) ? { ...change, impact: 'read' } : change

function compareEntries(name: string, old: LockEntry | undefined, entry: LockEntry): Change[] {
  const lists = compareLists(name, asLists(old), asLists(entry)).map(asReviewed)
  if (old?.instructions === entry.instructions) return lists
  const sides = { before: old?.instructions ?? '', after: entry.instructions ?? '' }
  return [{ at: [name], impact: 'read', what: 'instructions changed', ...sides }, ...lists]
}

async function accept(
  { token: given, 'dry-run': isDryRun, ...options }: CommandValues<typeof OPTIONS>,
  names: readonly string[],
  context: CommandContext,
): Promise<void> {
  const { cwd, print } = context
  const token = await readToken(context, given)
  const { file: config, servers } = await readServerSettings(options, context)
  if (servers.size === 0) throw usage('the config has no upstream servers')
  for (const name of names) if (!servers.has(name)) throw unknownName('upstream server', name, [...servers.keys()])
  if (token !== undefined && names.length !== 1) throw usage('--token requires the name of one server')
  const file = lockFileOf(config, undefined, cwd)
  const before = await readLockIfThere(file, context)
  const surface = await surfaceOfConfig(context, options).then(found => found.surface)
  const chosen = [...servers.values()].filter(({ name }) => names.length === 0 || names.includes(name))
  const read = await Promise.allSettled(chosen.map(async one => [one.name, await readEntry(one, token)] as const))
  const entries = read.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
  const failures = read.flatMap(one => (one.status === 'rejected' ? [one.reason as Error] : []))
  const failure = failures[0] && usage(failures.map(({ message }) => message).join('\n'), failures[0])
  if (failure && entries.length === 0) throw failure
  const kept = Object.entries(before?.upstreams ?? {}).filter(([name]) => servers.has(name))
  const upstreams = Object.fromEntries([...kept, ...entries].sort(([one], [other]) => (one < other ? -1 : 1)))
  const changed: string[] = []
  const lines = entries.flatMap(([name, entry]) => {
    const old = Object.hasOwn(before?.upstreams ?? {}, name) ? before?.upstreams?.[name] : undefined
    const changes = compareEntries(name, old, entry)
    if (changes.length > 0) changed.push(name)
    const text = changes.length === 0 ? 'no changes' : `${impactsText(changes)}\n\n${changesText(changes)}\n`
    const settings = servers.get(name)
    const isLost =
      settings &&
      isRestrictionLost(
        settings,
        Object.keys(entry.tools).map(tool => ({ name: tool })),
      )
    const warning = 'WARNING: an override with `access` or `value` matches no tool: correct `overrides` in the config'
    return [...`${name}: ${text}`.split('\n'), ...(isLost ? [`${name}: ${warning}`] : [])]
  })
  if (!isDryRun) {
    const isUpToDate = before === undefined || before.hash === surface.hash
    let lock: Lock = { ...(before ?? surface), upstreams }
    await writeLockFile(file, lock, cwd)
    if (isUpToDate) {
      lock = { ...(await surfaceOfConfig(context, { ...options, 'log-level': 'error' })).surface, upstreams }
      await writeLockFile(file, lock, cwd)
    }
    const isSame = before !== undefined && lockText(before) === lockText(lock)
    const written = `Written to ${displayName(file, cwd)}. A reload (SIGHUP) applies it, and restarts stdio servers whose lists differ.`
    lines.push(isSame ? `${displayName(file, cwd)} is unchanged.` : written)
    if (!isUpToDate)
      lines.push(context.runnable('The lock file lacks other changes: run mcp-host diff, then mcp-host lock.'))
  }
  if (isDryRun && changed.length > 0) {
    lines.push('Dry run: nothing was written. To accept these changes, run the same command without --dry-run.')
  }
  // Printed after the write, because the process ends when the reader of its output, such as `head`, ends.
  for (const line of lines) print(printable(line))
  if (failure) throw failure
}

export const acceptCommand = defineCommand({
  summary: 'Accept the current tools and prompts of upstream servers',
  example: 'github',
  positionals: ['[NAME...]'],
  options: OPTIONS,
  notes: `Connects to the servers, prints what changed since they were accepted, and writes their tools and prompts to ${LOCK_NAME}.
Without NAME: all servers of plugins.upstream that respond. Review the changes: models read them. Commit the file together with the config.`,
  run: accept,
})
