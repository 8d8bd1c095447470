// `mcp-host lock`: writes down what the config offers, route by route, so that a change of it is seen before it is served.
import { stat } from 'node:fs/promises'
import { printable } from '../client/text.ts'
import type { CommandContext } from './context.ts'
import { compareSurfaces } from './lock/compare-surfaces.ts'
import { countsText } from './lock/describe-changes.ts'
import { LOCK_NAME, lockFileOf, nameOf, readLockFile, writeLockFile } from './lock/lock-file.ts'
import { SURFACE_LISTS, type Surface } from './lock/surface.ts'
import { notLocked, SURFACE_OPTIONS, surfaceOfConfig } from './lock/surface-of-config.ts'
import { defineVerb, type VerbValues } from './verb.ts'

const OPTIONS = {
  ...SURFACE_OPTIONS,
  lock: { type: 'string', value: '<file>', help: `where to write it; default: ${LOCK_NAME} beside the config` },
} as const

const NAMES = ['tools', 'resources', 'resource templates', 'prompts']

/** How much there is, each item as often as it is served. */
function sizeOf({ routes }: Surface): string {
  const served = Object.values(routes)
  const counts = SURFACE_LISTS.map((list, index) => {
    const count = served.reduce((sum, route) => sum + Object.keys(route[list]).length, 0)
    return count === 0 ? [] : `${count} ${count === 1 ? NAMES[index]?.slice(0, -1) : NAMES[index]}`
  })
  return [`${served.length} ${served.length === 1 ? 'address' : 'addresses'}`, ...counts.flat()].join(', ')
}

/** The lock as it was; undefined where there was none that can be read. */
async function lockBefore(file: string, context: CommandContext): Promise<Surface | undefined> {
  const isThere = await stat(file).then(
    () => true,
    () => false,
  )
  // What is broken is written anew: that is what it was called for.
  return isThere ? readLockFile(file, context).catch(() => undefined) : undefined
}

async function lock(
  { lock: given, ...options }: VerbValues<typeof OPTIONS>,
  _positionals: readonly string[],
  context: CommandContext,
): Promise<void> {
  const { cwd } = context
  const { file: config, surface } = await surfaceOfConfig(context, options)
  const file = lockFileOf(config, given, cwd)
  const before = await lockBefore(file, context)
  await writeLockFile(file, surface, cwd)
  const what = before && (before.hash === surface.hash ? 'as it was' : countsText(compareSurfaces(before, surface)))
  const lines = [
    `${nameOf(file, cwd)}: ${sizeOf(surface)}${what === undefined ? '' : ` (${what})`}`,
    notLocked(surface),
  ]
  context.print(printable(lines[0] ?? ''))
  if (lines[1]) context.print(printable(lines[1]))
}

export const lockVerb = defineVerb({
  summary: 'write down what the config offers, for diff and start --frozen',
  options: OPTIONS,
  notes: `Keep the file with the config: it has names, descriptions, schemas and who may call, never a secret.
mcp-host diff says what changed since, and start --frozen serves nothing else.`,
  run: lock,
})
