// `mcp-host diff`: compares the config with its lock and reports breaking changes.
import { printable } from '../client/text.ts'
import { LOCK_NAME } from '../core/host.ts'
import type { UpstreamState } from '../plugins/families/upstream-calls/index.ts'
import { reviewLists } from '../plugins/upstream/lock-entry.ts'
import { operatorText } from '../remote/index.ts'
import { collectWarnings } from './check.ts'
import { type CommandValues, defineCommand } from './command.ts'
import { type CommandContext, usage } from './context.ts'
import { type Change, compareSurfaces } from './lock/compare-surfaces.ts'
import { changesText, countImpacts, impactsText } from './lock/describe-changes.ts'
import { displayName, lockFileOf, readLockFile } from './lock/lock-file.ts'
import type { Lock, Surface } from './lock/surface.ts'
import { notLockedNote, SURFACE_OPTIONS, surfaceOfConfig } from './lock.ts'
import { jsonText } from './text.ts'
import { readServerLists, readServerSettings } from './upstream/read-servers.ts'

const OPTIONS = {
  ...SURFACE_OPTIONS,
  connect: { help: 'Connect to accepted upstream servers, and compare their current tools and prompts' },
  json: { help: 'Print JSON' },
  'fail-on': {
    choices: ['any', 'breaking'],
    help: 'Changes that exit with 3: any change, or breaking changes only [any]',
  },
} as const

type Given = CommandValues<Pick<typeof OPTIONS, keyof typeof SURFACE_OPTIONS | 'connect'>>
type Sides = Awaited<ReturnType<typeof readSides>>

/** Servers that are not in the lock file, which `start --frozen` refuses. */
export function findUnaccepted(servers: readonly string[], { upstreams = {} }: Lock): Change[] {
  const missing = servers.filter(name => !Object.hasOwn(upstreams, name))
  const what = `its tools and prompts are not in the lock file; run mcp-host accept ${missing.join(' ')}`
  return missing.map(name => ({ at: [], of: { kind: 'upstream server', name }, impact: 'read', what }))
}

const CHANGE_TEXTS = { new: 'is new', changed: 'has changed', removed: 'was removed' } as const

/** Converts the differences between a server's lists and its entry in the lock file to changes. */
export const upstreamChanges = ({ name, differences }: Pick<UpstreamState, 'name' | 'differences'>): Change[] =>
  differences.map(({ label, kind, isWithheld, sides }) => {
    const affectsClients = label !== 'instructions' && kind !== 'new'
    const text = CHANGE_TEXTS[kind]
    return {
      at: [],
      of: { kind: 'upstream server', name },
      impact: !affectsClients ? 'read' : isWithheld || kind === 'removed' ? 'breaking' : 'may-break',
      what: `${label} ${isWithheld ? `is withheld because it ${text}` : text}; review it with mcp-host accept ${name} --dry-run`,
      ...sides(),
    }
  })

interface ReadServers {
  readonly changes: readonly Change[]
  /** Servers whose lists were not read, with the reasons. */
  readonly notCompared: ReadonlyArray<{ readonly name: string; readonly reason: string }>
}

async function readUpstreams(options: Given, context: CommandContext, lock: Lock, isCurrent: boolean) {
  const { servers } = await readServerSettings(options, context, collectWarnings(context.cwd).log)
  const { upstreams = {} } = lock
  const accepted = [...servers.values()].filter(({ name }) => isCurrent && Object.hasOwn(upstreams, name))
  const read = await Promise.all(
    accepted.map(async (settings): Promise<ReadServers> => {
      const { name } = settings
      // A program of a changed config must not run in CI unasked.
      if (!options.connect) return { changes: [], notCompared: [{ name, reason: 'run mcp-host diff --connect' }] }
      try {
        const { differences } = reviewLists((await readServerLists(settings)).snapshot, upstreams[name], settings)
        return { changes: upstreamChanges({ name, differences }), notCompared: [] }
      } catch (error) {
        return { changes: [], notCompared: [{ name, reason: operatorText(error) }] }
      }
    }),
  )
  const changes = [...findUnaccepted([...servers.keys()], lock), ...read.flatMap(one => one.changes)]
  return { changes, notCompared: read.flatMap(one => one.notCompared) }
}

async function readSides(
  options: Given,
  given: readonly string[],
  context: CommandContext,
): Promise<{ names: readonly [string, string]; before: Surface; after: Surface; upstreams: ReadServers }> {
  const { cwd } = context
  const [old, newer] = given
  if (options.connect && old !== undefined) throw usage('--connect cannot be combined with a lock file')
  if (newer !== undefined) {
    const files = [old ?? '', newer] as const
    if (options.config !== undefined) throw usage('--config cannot be combined with two lock files')
    return {
      names: [displayName(files[0], cwd), displayName(newer, cwd)],
      before: await readLockFile(files[0], context),
      after: await readLockFile(newer, context),
      upstreams: { changes: [], notCompared: [] },
    }
  }
  const { file, surface } = await surfaceOfConfig(context, options)
  const lock = old === '-' ? old : lockFileOf(file, old, cwd)
  const names = [displayName(lock, cwd), displayName(file, cwd)] as const
  const before = await readLockFile(lock, context)
  return { names, before, after: surface, upstreams: await readUpstreams(options, context, before, old === undefined) }
}

/** Exit codes: 0 no change, 3 no breaking change, 4 breaking or possibly breaking. */
function exitCodeOf(changes: readonly Change[], failOn: string, isComplete: boolean): 0 | 3 | 4 {
  if (!isComplete || changes.some(({ impact }) => impact === 'breaking' || impact === 'may-break')) return 4
  return changes.length > 0 && failOn === 'any' ? 3 : 0
}

function inText({ names: [before, after], ...sides }: Sides, changes: readonly Change[]): string {
  const { notCompared } = sides.upstreams
  const notes = [
    ...notCompared.map(({ name, reason }) => `Not compared: upstream server "${name}": ${reason}`),
    notLockedNote(sides.after),
  ].filter(note => note !== '')
  const head =
    changes.length === 0
      ? `${before} and ${after} are equal${notCompared.length === 0 ? '' : ', except for what was not compared'}.`
      : `From ${before} to ${after}: ${impactsText(changes)}\n\n${changesText(changes)}`
  return [
    ...head.split('\n').map(line => printable(line)),
    ...(notes.length === 0 ? [] : ['', ...notes.map(note => printable(note))]),
  ].join('\n')
}

export const diffCommand = defineCommand({
  summary: 'Show what changed since the lock file, and whether it breaks clients',
  example: '--fail-on breaking',
  positionals: ['[OLD]', '[NEW]'],
  options: OPTIONS,
  notes: `mcp-host diff          compare ${LOCK_NAME} with the config
mcp-host diff OLD      compare another lock file with the config; - reads stdin
mcp-host diff OLD NEW  compare two lock files

Exit codes: 0 no change, 3 compatible changes, 4 changes that break or can break clients,
or a server that --connect cannot read, 2 invalid arguments, lock file or config.`,
  async run({ 'fail-on': failOn = 'any', json = false, ...options }, given, context) {
    const sides = await readSides(options, given, context)
    const { before, after } = sides
    const changes = [...compareSurfaces(before, after), ...sides.upstreams.changes]
    const hashes = { before: before.hash, after: after.hash }
    const { atRunTime } = after
    const { notCompared } = sides.upstreams
    const isComplete = !options.connect || notCompared.length === 0
    const report = {
      same: isComplete && changes.length === 0,
      ...hashes,
      counts: countImpacts(changes),
      atRunTime,
      notCompared,
      changes,
    }
    context.print(json ? jsonText(report) : context.runnable(inText(sides, changes)))
    return exitCodeOf(changes, failOn, isComplete)
  },
})
