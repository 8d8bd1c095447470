// A file that one plugin writes, and no other: what two wrote into it, neither could read.
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type PluginHost, StartError } from '../../../core/index.ts'

interface Owner {
  readonly name: string
  readonly at: PluginHost['at']
}

const FILES = Symbol('files that plugins write')

/**
 * Reports, at the option `file`, a file that another plugin writes, or that is a folder; warns of a folder in which anyone
 * can replace the file. `path`: absolute.
 */
export function claimFile(host: PluginHost, path: string): void {
  const at = [...host.at, 'file']
  const owners = host.share(FILES, () => new Map<string, Owner>())
  const owner = owners.get(path)
  if (owner && owner.name !== host.name) {
    host.report(
      new StartError(`${owner.name} writes this file, too: give each a file of its own`, { at, also: [owner] }),
    )
  }
  owners.set(path, owner ?? { name: host.name, at })
  if (host.purpose !== 'test') host.checking(() => checkPlace(host, path, at))
}

function checkPlace({ report }: PluginHost, path: string, at: PluginHost['at']) {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    report(new StartError(`${path} is a folder: name a file, such as one in it`, { at }))
  const folder = dirname(path)
  const { mode = 0 } = statSync(folder, { throwIfNoEntry: false }) ?? {}
  // With a sticky bit only the owner of a file can replace it.
  if (process.platform === 'win32' || (mode & 0o1002) !== 0o002) return
  const what = `anyone on this machine can replace files in ${folder} (mode ${(mode & 0o777).toString(8)})`
  report(new StartError(`${what}; chmod o-w ${folder}`, { at }), 'warning')
}
