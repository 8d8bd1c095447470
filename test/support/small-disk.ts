// A separate disk for a test: small, or read-only even for root.
import { execFileSync } from 'node:child_process'
import type { Context } from 'mocha'
import { pending } from './needs-program.ts'

/** Mounts a few kB at a folder. Skips the test, also in CI, if this process must not mount, and prints the reason. */
export function mountSmall(context: Context, folder: string, access: 'rw' | 'ro' = 'rw', kilobytes = 32): void {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k,${access}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    pending(context, 'this process may mount no disk (root with CAP_SYS_ADMIN may)')
  }
}

export const unmount = (folder: string): void => void execFileSync('umount', [folder])
