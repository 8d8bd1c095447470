// This package's version, from its package.json, wherever the CLI runs from: source or dist.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

function findVersion(directory: string): string {
  try {
    const { name, version } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Record<
      string,
      string
    >
    if (name === 'mcp-host' && version !== undefined) return version
  } catch {
    // No package.json here: look above.
  }
  const parent = dirname(directory)
  return parent === directory ? 'unknown' : findVersion(parent)
}

export const version: string = findVersion(dirname(fileURLToPath(import.meta.url)))
