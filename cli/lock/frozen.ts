// `start --frozen`: what a host would serve is held against the lock, at the start and at each reload.
import type { CreateHostOptions } from '../../core/create-host.ts'
import { StartError } from '../../core/http/errors.ts'
import { compareSurfaces } from './compare-surfaces.ts'
import { changeLine, countsText } from './describe-changes.ts'
import { type LockContext, lockFileOf, nameOf, readLockFile } from './lock-file.ts'
import { readSurface } from './read-surface.ts'

/** How many differences the message has. */
const MOST_LINES = 10

/** Refuses a host that does not serve what the lock of its config says; `given`: where that is, if not beside it. The lock is read anew each time: a new config comes with its own. */
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
    throw new StartError([`${what}:`, ...lines, ...more, fix].join('\n'), { exitCode: 2 })
  }
}
