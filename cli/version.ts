// This package's folder and version, when run from source or from dist.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

interface OwnPackage {
  readonly folder: string
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const file = createRequire(import.meta.url).resolve('mcp-host/package.json')

export const ownPackage: OwnPackage = { ...JSON.parse(readFileSync(file, 'utf8')), folder: dirname(file) }

export const { version } = ownPackage
