// A mistake in a folder of skills: which file, which line where one is to blame, and what to do about it.

/** What keeps a folder of skills from being served. Its message begins with the file, as the config calls its folder. */
export class SkillFault extends Error {
  constructor(place: string, what: string, line?: number) {
    super(line === undefined ? `${place}: ${what}` : `${place}:${line}: ${what}`)
    this.name = 'SkillFault'
  }
}

/** What went wrong with a file, in words. */
export function fileTrouble(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'EPERM') return 'it may not be read by the user that the host runs as'
  if (code === 'ENOENT') return 'it is not there'
  if (code === 'ELOOP') return 'it is a symbolic link that leads back to itself'
  return `it cannot be read: ${code ?? message}`
}

/** A count as people read it: `16,777,216`. */
export const shownCount = (count: number): string => count.toLocaleString('en-US')
