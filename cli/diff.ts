// `mcp-host diff`: compares the config with its lock and reports breaking changes.
import { printable } from '../client/text.ts'
import { type CommandContext, usage } from './context.ts'
import { type Change, compareSurfaces } from './lock/compare-surfaces.ts'
import { changesText, countsOf, countsText } from './lock/describe-changes.ts'
import { LOCK_NAME, lockFileOf, nameOf, readLockFile } from './lock/lock-file.ts'
import type { Surface } from './lock/surface.ts'
import { notLocked, SURFACE_OPTIONS, surfaceOfConfig } from './lock.ts'
import { jsonText } from './text.ts'
import { defineVerb, type VerbValues } from './verb.ts'

const OPTIONS = {
  ...SURFACE_OPTIONS,
  json: { type: 'boolean', help: 'as JSON, for programs' },
  'fail-on': {
    type: 'string',
    choices: ['any', 'breaking'],
    help: 'breaking lets a change that breaks nothing exit with 0 instead of 3; without it every change counts',
  },
} as const

type DiffOptions = VerbValues<typeof OPTIONS>

interface Sides {
  readonly names: readonly [before: string, after: string]
  readonly before: Surface
  readonly after: Surface
}

async function readSides(
  options: Omit<DiffOptions, 'json' | 'fail-on'>,
  given: readonly string[],
  context: CommandContext,
): Promise<Sides> {
  const { cwd } = context
  const [old, newer] = given
  if (newer !== undefined) {
    const files = [old ?? '', newer] as const
    if (options.config !== undefined) throw usage('two locks need no --config')
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

/** 0: no change. 3: no breaking change. 4: breaking, or possibly breaking. */
function exitCodeOf(changes: readonly Change[], failOn: string): 0 | 3 | 4 {
  if (changes.some(({ impact }) => impact === 'breaking' || impact === 'may-break')) return 4
  return changes.length > 0 && failOn === 'any' ? 3 : 0
}

function inText({ names: [before, after], ...sides }: Sides, changes: readonly Change[]): string {
  const note = notLocked(sides.after)
  const head =
    changes.length === 0
      ? `${before} and ${after} say the same.`
      : `From ${before} to ${after}: ${countsText(changes)}\n\n${changesText(changes)}`
  return [...head.split('\n').map(line => printable(line)), ...(note === '' ? [] : ['', printable(note)])].join('\n')
}

async function diff(
  { 'fail-on': failOn = 'any', json = false, ...options }: DiffOptions,
  given: readonly string[],
  context: CommandContext,
): Promise<number> {
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
}

export const diffVerb = defineVerb({
  summary: 'say what changed since the lock, and whether it breaks clients',
  positionals: ['[OLD]', '[NEW]'],
  options: OPTIONS,
  notes: `mcp-host diff                     ${LOCK_NAME} beside the config, and the config as it is
mcp-host diff OLD                 another lock, and the config as it is; - reads the lock from stdin
mcp-host diff OLD NEW             two locks

Exit codes: 0 the same, 3 changed and nothing breaks, 4 it breaks clients or may, 2 the command, a lock or the config must
change.`,
  run: diff,
})
