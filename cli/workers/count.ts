// Parses `--workers`.
import { availableParallelism } from 'node:os'
import { usage } from '../context.ts'

/** Exceeds the cores of any machine, so the value is a mistake, such as a port. */
const MOST = 1024

export function parseCount(text: string): number {
  if (text === 'auto') return availableParallelism()
  const count = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0
  if (count > 0 && count <= MOST) return count
  throw usage(`--workers ${text}: give a number from 1 to ${MOST}, or "auto" for one per core`)
}
