// Files that are written by one plugin only.
import { accessSync, constants, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt, type InternalHost } from '../../../core/internal.ts'
import { errorText, StartError } from '../../../core/plugin.ts'

interface Owner {
  readonly name: string
  readonly at: InternalHost['config']['at']
}

const OWNERS = Symbol('files that plugins write')

/** Claims a file for the plugin. `path`: absolute. `appendsOnly`: the folder of an existing file can be read-only. */
export function claimFile(host: InternalHost, path: string, { appendsOnly = false } = {}): void {
  const at = [...host.config.at, 'file']
  const owners = host.share(OWNERS, () => new Map<string, Owner>())
  const owner = owners.get(path)
  if (owner && owner.name !== host.name) {
    const why = `${owner.name} also writes this file: use separate files`
    host.report(new StartError('MH1041', why, { at, also: [owner] }))
  }
  owners.set(path, owner ?? { name: host.name, at })
  if (host.config.purpose !== 'test') host.onReady(() => checkFileAccess(host, path, appendsOnly))
}

/**
 * Returns the start time of a process on Linux, in ticks since boot, which distinguishes processes with the same id. The
 * program name can contain spaces and parentheses.
 */
export const processStartTime = (pid: number | string): string | undefined =>
  attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
    ?.replace(/^.*\) /s, '')
    .split(' ')[19]

/** Creates a private folder, which only the host's user and group can enter. */
export function createParentFolder(path: string): void {
  const folder = dirname(path)
  const created = mkdirSync(folder, { recursive: true, mode: 0o750 })
  // Keeps user data out of Git.
  if (created !== undefined) writeFileSync(join(folder, '.gitignore'), '*\n')
}

function checkFileAccess({ report, config }: InternalHost, path: string, appendsOnly: boolean) {
  const at = [...config.at, 'file']
  const exists = existsSync(path)
  if (exists && statSync(path).isDirectory())
    return report(new StartError('MH1042', `${path} is a folder: set the path of a file`, { at }))
  let parent = dirname(path)
  while (!existsSync(parent) && parent !== dirname(parent)) parent = dirname(parent)
  let why = 'this user cannot write to the file'
  try {
    if (exists) accessSync(path, constants.W_OK)
    why = `${parent} is not a folder, or this user cannot write to it`
    // A path with `/.` fails if it is not a folder.
    if (!exists || !appendsOnly) accessSync(`${parent}/.`, constants.W_OK)
  } catch (cause) {
    const fix = 'grant the user of this host write access, or choose another file'
    report(new StartError('MH1042', `${path} cannot be written: ${why} (${errorText(cause)}); ${fix}`, { at, cause }))
  }
  const folder = dirname(path)
  const mode = existsSync(folder) ? statSync(folder).mode : 0
  // With a sticky bit only the owner of a file can replace it.
  if (process.platform === 'win32' || (mode & 0o1002) !== 0o002) return
  const what = `anyone on this machine can replace files in ${folder} (mode ${(mode & 0o777).toString(8)})`
  report(new StartError('MH1043', `${what}; chmod o-w ${folder}`, { at }), 'warning')
}
