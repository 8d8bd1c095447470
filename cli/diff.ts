// `mcp-host diff`: compares the config with its lock and reports breaking changes.
import { printable } from '../client/text.ts'
import { LOCK_NAME } from '../core/host.ts'
import { type CommandValues, defineCommand } from './command.ts'
import { type CommandContext, usage } from './context.ts'
import { type Change, compareSurfaces } from './lock/compare-surfaces.ts'
import { changesText, countsOf, countsText } from './lock/describe-changes.ts'
import { lockFileOf, nameOf, readLockFile } from './lock/lock-file.ts'
import type { Surface } from './lock/surface.ts'
import { notLocked, SURFACE_OPTIONS, surfaceOfConfig } from './lock.ts'
import { jsonText } from './text.ts'

const OPTIONS = {
  ...SURFACE_OPTIONS,
  json: { type: 'boolean', help: 'Print JSON' },
  'fail-on': {
    type: 'string',
    choices: ['any', 'breaking'],
    help: 'Changes that exit with 3: any change, or breaking changes only [any]',
  },
} as const

type DiffOptions = CommandValues<typeof OPTIONS>

type Sides = Awaited<ReturnType<typeof readSides>>

async function readSides(
  options: Omit<DiffOptions, 'json' | 'fail-on'>,
  given: readonly string[],
  context: CommandContext,
): Promise<{ names: readonly [before: string, after: string]; before: Surface; after: Surface }> {
  const { cwd } = context
  const [old, newer] = given
  if (newer !== undefined) {
    const files = [old ?? '', newer] as const
    if (options.config !== undefined) throw usage('--config cannot be combined with two lock files')
    return {
      names: [nameOf(files[0], cwd), nameOf(newer, cwd)],
      before: await readLockFile(files[0], context),
      after: await readLockFile(newer, context),
    }
  }
  const { file, surface } = await surfaceOfConfig(context, options)
  const lock = old === '-' ? old : lockFileOf(file, old, cwd)
  const names = [nameOf(lock, cwd), nameOf(file, cwd)] as const
  return { names, before: await readLockFile(lock, context), after: surface }
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
    const changes = compareSurfaces(before, after)
    const exitCode = exitCodeOf(changes, failOn)
    const hashes = { before: before.hash, after: after.hash }
    const report = {
      same: changes.length === 0,
      ...hashes,
      counts: countsOf(changes),
      atRunTime: after.atRunTime,
      changes,
    }
    context.print(json ? jsonText(report) : inText(sides, changes))
    return exitCode
  },
})
