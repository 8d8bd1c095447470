// `mcp-host lock`: writes the surface of each route to a file, so that changes are reviewed before they are served.

import { existsSync } from 'node:fs'
import { printable } from '../client/text.ts'
import { type CreateHostOptions, type Host, LOCK_NAME } from '../core/host.ts'
import type { LockSettings } from '../core/kernel/kernel-host.ts'
import { CONFIG_OPTION, type CommandValues, defineCommand, ENV_FILE_OPTION, type LogValues } from './command.ts'
import { inspectConfig } from './config.ts'
import { type CommandContext, usage } from './context.ts'
import { compareSurfaces } from './lock/compare-surfaces.ts'
import { changeLine, impactsText } from './lock/describe-changes.ts'
import { displayName, type LockContext, lockFileOf, readLockFile, writeLockFile } from './lock/lock-file.ts'
import { readSurface } from './lock/read-surface.ts'
import { type Lock, SURFACE_LISTS, type Surface } from './lock/surface.ts'
import { countText } from './text.ts'

export const SURFACE_OPTIONS = { ...CONFIG_OPTION, ...ENV_FILE_OPTION } as const

/** `lock`: the lock file with the accepted definitions of upstream servers. */
export const surfaceOfConfig = (
  context: CommandContext,
  values: CommandValues<typeof SURFACE_OPTIONS> & LogValues,
  lock?: string,
): Promise<{ readonly file: string; readonly surface: Surface }> =>
  inspectConfig(
    values,
    context,
    async (host, { file }) => ({ file, surface: readSurface(host.served) }),
    file => ({ file: lockFileOf(file, lock, context.cwd), isFrozen: false }),
  )

export const notLockedNote = ({ atRunTime }: Pick<Surface, 'atRunTime'>): string =>
  atRunTime.length === 0
    ? ''
    : `Not locked: ${atRunTime.join(', ')} can change what each caller is offered at run time.`

const NAMES = ['tool', 'resource', 'resource template', 'prompt']

function sizeText({ routes }: Surface): string {
  const served = Object.values(routes)
  const counts = SURFACE_LISTS.map((list, index) => {
    const count = served.reduce((sum, route) => sum + Object.keys(route[list]).length, 0)
    return count === 0 ? [] : countText(count, NAMES[index] ?? '')
  })
  return [`${served.length} ${served.length === 1 ? 'address' : 'addresses'}`, ...counts.flat()].join(', ')
}

export async function readLockIfThere(file: string, context: CommandContext): Promise<Lock | undefined> {
  return existsSync(file) ? readLockFile(file, context) : undefined
}

export const lockCommand = defineCommand({
  summary: 'Write the lock file: everything that the config serves, for diff and start --frozen',
  example: '',
  options: {
    ...SURFACE_OPTIONS,
    lock: { value: '<file>', help: `Lock file [${LOCK_NAME} next to the config]` },
  },
  notes: `Commit the file together with the config. It contains names, descriptions, schemas and access rules, but no secrets.
mcp-host diff compares the config with it; start --frozen serves nothing else.
mcp-host accept adds the tools and prompts of upstream servers to it.`,
  async run({ lock: given, ...options }, _positionals, context) {
    const { cwd } = context
    const { file: config, surface } = await surfaceOfConfig(context, options, given)
    const file = lockFileOf(config, given, cwd)
    const before = await readLockIfThere(file, context).catch(() => undefined)
    await writeLockFile(file, { ...surface, ...(before?.upstreams && { upstreams: before.upstreams }) }, cwd)
    const what = before && (before.hash === surface.hash ? 'unchanged' : impactsText(compareSurfaces(before, surface)))
    context.print(printable(`${displayName(file, cwd)}: ${sizeText(surface)}${what === undefined ? '' : ` (${what})`}`))
    const note = notLockedNote(surface)
    if (note !== '') context.print(printable(note))
  },
})

const MAX_LINES = 10

/** Refuses a host that differs from its lock. Reads the lock for each check, because a reload can change both. */
export function requireLock(
  config: string,
  given: string | undefined,
  context: LockContext,
): Pick<Required<CreateHostOptions>, 'accept'> & { readonly lock: LockSettings } {
  const file = lockFileOf(config, given, context.cwd)
  const accept = async (host: Pick<Host, 'served'>) => {
    const lock = await readLockFile(file, context)
    const surface = readSurface(host.served)
    if (lock.hash === surface.hash) return
    const changes = compareSurfaces(lock, surface)
    const lines = changes.slice(0, MAX_LINES).map(change => `  ${change.impact}: ${changeLine(change)}`)
    const more = changes.length > MAX_LINES ? [`  and ${changes.length - MAX_LINES} more`] : []
    const what = `--frozen: this config differs from ${displayName(file, context.cwd)} (${impactsText(changes)})`
    const fix = 'run mcp-host diff to see the changes; if they are intended, run mcp-host lock'
    throw usage([`${what}:`, ...lines, ...more, fix].join('\n'))
  }
  return { accept, lock: { file, isFrozen: true } }
}
