// `mcp-host lock`: writes the surface of each route to a file, so that changes are reviewed before they are served.

import { stat } from 'node:fs/promises'
import { printable } from '../client/text.ts'
import type { CreateHostOptions } from '../core/create-host.ts'
import { inspectConfig } from './config.ts'
import { type CommandContext, usage } from './context.ts'
import { compareSurfaces } from './lock/compare-surfaces.ts'
import { changeLine, countsText } from './lock/describe-changes.ts'
import { LOCK_NAME, type LockContext, lockFileOf, nameOf, readLockFile, writeLockFile } from './lock/lock-file.ts'
import { readSurface } from './lock/read-surface.ts'
import { SURFACE_LISTS, type Surface } from './lock/surface.ts'
import { CONFIG_OPTION, defineVerb, ENV_FILE_OPTION, type VerbValues } from './verb.ts'

export const SURFACE_OPTIONS = { ...CONFIG_OPTION, ...ENV_FILE_OPTION } as const

export const surfaceOfConfig = (
  context: CommandContext,
  values: VerbValues<typeof SURFACE_OPTIONS>,
): Promise<{ readonly file: string; readonly surface: Surface }> =>
  inspectConfig(values, context, async (host, { file }) => ({ file, surface: readSurface(host.served) }))

export const notLocked = ({ atRunTime }: Pick<Surface, 'atRunTime'>): string =>
  atRunTime.length === 0
    ? ''
    : `Not locked: ${atRunTime.join(', ')} decides at run time what each caller is offered beside this, or in its place.`

const NAMES = ['tools', 'resources', 'resource templates', 'prompts']

function sizeOf({ routes }: Surface): string {
  const served = Object.values(routes)
  const counts = SURFACE_LISTS.map((list, index) => {
    const count = served.reduce((sum, route) => sum + Object.keys(route[list]).length, 0)
    return count === 0 ? [] : `${count} ${count === 1 ? NAMES[index]?.slice(0, -1) : NAMES[index]}`
  })
  return [`${served.length} ${served.length === 1 ? 'address' : 'addresses'}`, ...counts.flat()].join(', ')
}

async function lockBefore(file: string, context: CommandContext): Promise<Surface | undefined> {
  const isThere = await stat(file).then(
    () => true,
    () => false,
  )
  // An invalid lock is overwritten.
  return isThere ? readLockFile(file, context).catch(() => undefined) : undefined
}

export const lockVerb = defineVerb({
  summary: 'Write the lock file: everything that the config serves, for diff and start --frozen',
  example: '',
  options: {
    ...SURFACE_OPTIONS,
    lock: { type: 'string', value: '<file>', help: `Lock file [${LOCK_NAME} next to the config]` },
  },
  notes: `Commit the file together with the config. It contains names, descriptions, schemas and access rules, but no secrets.
mcp-host diff compares the config with it; start --frozen serves nothing else.`,
  async run({ lock: given, ...options }, _positionals, context) {
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
  },
})

const MOST_LINES = 10

/** Refuses a host that differs from its lock. Reads the lock for each check, because a new config can have a new lock. */
export function holdTo(
  config: string,
  given: string | undefined,
  context: LockContext,
): NonNullable<CreateHostOptions['accept']> {
  const file = lockFileOf(config, given, context.cwd)
  return async host => {
    const lock = await readLockFile(file, context)
    const surface = readSurface(host.served)
    if (lock.hash === surface.hash) return
    const changes = compareSurfaces(lock, surface)
    const lines = changes.slice(0, MOST_LINES).map(change => `  ${change.impact}: ${changeLine(change)}`)
    const more = changes.length > MOST_LINES ? [`  and ${changes.length - MOST_LINES} more`] : []
    const what = `--frozen: this config does not serve what ${nameOf(file, context.cwd)} says (${countsText(changes)})`
    const fix = 'mcp-host diff shows all of it; where it is meant, mcp-host lock writes it down'
    throw usage([`${what}:`, ...lines, ...more, fix].join('\n'))
  }
}
