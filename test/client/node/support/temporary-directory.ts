// Temporary directories for one test file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made: string[] = []

export function makeTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mcp-host-client-'))
  made.push(directory)
  return directory
}

export function removeTemporaryDirectories(): void {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true })
}
