// `mcp-host diff`: compares the config with its lock and reports breaking changes.
import { printable } from '../client/text.ts'
import { optionsOf } from '../core/create-host.ts'
import { LOCK_NAME } from '../core/host.ts'
import type { UpstreamOptions } from '../plugins/upstream/options.ts'
import { collectWarnings } from './check.ts'
import { type CommandValues, defineCommand } from './command.ts'
import { readConfig } from './config.ts'
import { type CommandContext, usage } from './context.ts'
import { type Change, compareSurfaces } from './lock/compare-surfaces.ts'
import { changesText, countsOf, countsText } from './lock/describe-changes.ts'
import { lockFileOf, nameOf, readLockFile } from './lock/lock-file.ts'
import type { Lock, Surface } from './lock/surface.ts'
import { notLocked, SURFACE_OPTIONS, surfaceOfConfig } from './lock.ts'
import { jsonText } from './text.ts'

const OPTIONS = {
  ...SURFACE_OPTIONS,
  json: { help: 'Print JSON' },
  'fail-on': {
    choices: ['any', 'breaking'],
    help: 'Changes that exit with 3: any change, or breaking changes only [any]',
  },
} as const

type Given = CommandValues<typeof SURFACE_OPTIONS>
type Sides = Awaited<ReturnType<typeof readSides>>

/** Servers that are not in the lock file, which `start --frozen` refuses. */
export function findUnaccepted(servers: readonly string[], { upstreams = {} }: Lock): Change[] {
  const missing = servers.filter(name => !Object.hasOwn(upstreams, name))
  const what = `its tools and prompts are not in the lock file; run mcp-host accept ${missing.join(' ')}`
  return missing.map(name => ({ at: [], of: { kind: 'upstream server', name }, impact: 'read', what }))
}

async function serversOf(options: Given, context: CommandContext): Promise<string[]> {
  const { log } = collectWarnings(context.cwd)
  const instances = await optionsOf(await readConfig(options, context), log, 'upstream')
  return instances.flatMap(one => Object.keys((one.options as UpstreamOptions).servers))
}

async function readSides(
  options: Given,
  given: readonly string[],
  context: CommandContext,
): Promise<{ names: readonly [string, string]; before: Surface; after: Surface; unaccepted: readonly Change[] }> {
  const { cwd } = context
  const [old, newer] = given
  if (newer !== undefined) {
    const files = [old ?? '', newer] as const
    if (options.config !== undefined) throw usage('--config cannot be combined with two lock files')
    return {
      names: [nameOf(files[0], cwd), nameOf(newer, cwd)],
      before: await readLockFile(files[0], context),
      after: await readLockFile(newer, context),
      unaccepted: [],
    }
  }
  const { file, surface } = await surfaceOfConfig(context, options)
  const lock = old === '-' ? old : lockFileOf(file, old, cwd)
  const names = [nameOf(lock, cwd), nameOf(file, cwd)] as const
  const before = await readLockFile(lock, context)
  return { names, before, after: surface, unaccepted: findUnaccepted(await serversOf(options, context), before) }
}

/** Exit codes: 0 no change, 3 no breaking change, 4 breaking or possibly breaking. */
function exitCodeOf(changes: readonly Change[], failOn: string): 0 | 3 | 4 {
  if (changes.some(({ impact }) => impact === 'breaking' || impact === 'may-break')) return 4
  return changes.length > 0 && failOn === 'any' ? 3 : 0
}

function inText({ names: [before, after], ...sides }: Sides, changes: readonly Change[]): string {
  const note = notLocked(sides.after)
  const head =
    changes.length === 0
      ? `${before} and ${after} are equal.`
      : `From ${before} to ${after}: ${countsText(changes)}\n\n${changesText(changes)}`
  return [...head.split('\n').map(line => printable(line)), ...(note === '' ? [] : ['', printable(note)])].join('\n')
}

export const diffCommand = defineCommand({
  summary: 'Show what changed since the lock file, and whether it breaks clients',
  example: '--fail-on breaking',
  positionals: ['[OLD]', '[NEW]'],
  options: OPTIONS,
  notes: `mcp-host diff          compare ${LOCK_NAME} with the config
mcp-host diff OLD      compare another lock file with the config; - reads stdin
mcp-host diff OLD NEW  compare two lock files

Exit codes: 0 no change, 3 compatible changes, 4 changes that break or can break clients, 2 invalid arguments, lock file or config.`,
  async run({ 'fail-on': failOn = 'any', json = false, ...options }, given, context) {
    const sides = await readSides(options, given, context)
    const { before, after } = sides
    const changes = [...compareSurfaces(before, after), ...sides.unaccepted]
    const exitCode = exitCodeOf(changes, failOn)
    const hashes = { before: before.hash, after: after.hash }
    const { atRunTime } = after
    const report = { same: changes.length === 0, ...hashes, counts: countsOf(changes), atRunTime, changes }
    context.print(json ? jsonText(report) : inText(sides, changes))
    return exitCode
  },
})
