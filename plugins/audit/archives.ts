// The files that an audit filled: named by when they were full, beside the one that is written.
import { access, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'

/** `2026-11-22T18-05-09-123Z`, and a number where that is taken. */
const STAMP = /^(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z)(?:-(\d+))?$/

const partsOf = (path: string) => {
  const extension = extname(path)
  return { folder: dirname(path), stem: `${basename(path, extension)}.`, extension }
}

/** Oldest first; of a folder that is not there, none. */
export async function archivesOf(path: string): Promise<string[]> {
  const { folder, stem, extension } = partsOf(path)
  const names = await readdir(folder)
  const found = names.flatMap(name => {
    if (!name.startsWith(stem) || !name.endsWith(extension)) return []
    const [stamp, time, number = '1'] = STAMP.exec(name.slice(stem.length, name.length - extension.length)) ?? []
    return stamp === undefined || time === undefined ? [] : { name, time, number: Number(number) }
  })
  // Not by name: there the second of one stamp, `-2`, comes before the first, which has no number, and `-10` before `-2`.
  found.sort((one, other) => (one.time === other.time ? one.number - other.number : one.time < other.time ? -1 : 1))
  return found.map(({ name }) => join(folder, name))
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** Resolves with where the file is then. */
export async function moveAway(path: string): Promise<string> {
  const { folder, stem, extension } = partsOf(path)
  const stamp = new Date().toISOString().replace(/[:.]/g, '-')
  for (let number = 1; ; number++) {
    const to = join(folder, `${stem}${stamp}${number === 1 ? '' : `-${number}`}${extension}`)
    if (await exists(to)) continue
    await rename(path, to)
    return to
  }
}

/** All but the newest `keep`. Resolves with those that were removed. */
export async function removeOldest(path: string, keep: number): Promise<string[]> {
  if (keep === Infinity) return []
  const all = await archivesOf(path)
  const old = all.slice(0, Math.max(0, all.length - keep))
  for (const file of old) await rm(file)
  return old
}

/** What a process writes to that shares the config with others: `audit.jsonl` becomes `audit.2.jsonl`. */
export function seatOf(path: string, number: number): string {
  const { folder, stem, extension } = partsOf(path)
  return join(folder, `${stem}${number}${extension}`)
}
