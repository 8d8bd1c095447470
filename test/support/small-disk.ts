// A disk of its own for a test: one that is soon full, or one that nobody may write, root included.
import { execFileSync } from 'node:child_process'
import type { Context } from 'mocha'

const told = new Set<string>()

/** Mounts a few kB at a folder. Where this process may not mount, CI's too, the test is pending, and it is said why. */
export function mountSmall(context: Context, folder: string, access: 'rw' | 'ro' = 'rw', kilobytes = 32): void {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k,${access}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    const why = 'pending: this process may mount no disk (root with CAP_SYS_ADMIN may)'
    if (!told.has(why)) console.log(why)
    told.add(why)
    context.skip()
  }
}

export const unmount = (folder: string): void => void execFileSync('umount', [folder])
