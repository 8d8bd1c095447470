// This package's folder and version, when run from source or from dist.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface OwnPackage {
  readonly folder: string
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

function findPackage(folder: string): OwnPackage {
  try {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Partial<OwnPackage> & {
      name?: string
    }
    const { name, version, dependencies = {}, devDependencies = {} } = manifest
    if (name === 'mcp-host' && version !== undefined) return { folder, version, dependencies, devDependencies }
  } catch {
    // This folder contains no package.json.
  }
  const parent = dirname(folder)
  return parent === folder ? { folder, version: 'unknown', dependencies: {}, devDependencies: {} } : findPackage(parent)
}

export const ownPackage: OwnPackage = findPackage(dirname(fileURLToPath(import.meta.url)))

export const { version } = ownPackage
