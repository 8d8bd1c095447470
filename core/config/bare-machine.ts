// What packages look for while they are loaded, and a bare machine does not have: a container whose user no file knows, a file
// system that nothing can be written to.
import { accessSync, constants } from 'node:fs'
import { homedir, tmpdir } from 'node:os'

function hasHome(): boolean {
  try {
    homedir()
    return true
  } catch {
    return false
  }
}

/** What `load` loads may ask where the user's home is: it is told the root where there is none. */
export async function withHome<Value>(load: () => Promise<Value>): Promise<Value> {
  if (hasHome()) return load()
  process.env['HOME'] = '/'
  try {
    return await load()
  } finally {
    delete process.env['HOME']
  }
}

/** tsx keeps what it compiled in the temporary folder, and in memory where that is not to be had. To be called before it is loaded. */
export function spareTemporaryFolder(): void {
  try {
    accessSync(tmpdir(), constants.W_OK)
  } catch {
    process.env['TSX_DISABLE_CACHE'] ||= '1'
  }
}
