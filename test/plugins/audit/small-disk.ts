// A real disk that is soon full.
import { execFileSync } from 'node:child_process'

/** A disk of 32 kB; false where this process may not mount one. */
export function mountSmall(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32k', 'tmpfs', folder], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
