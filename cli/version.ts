// This package's folder and version, when run from source or from dist.
import { createRequire } from 'node:module'
import { dirname } from 'node:path'

interface OwnPackage {
  readonly folder: string
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const require = createRequire(import.meta.url)
const file = require.resolve('mcp-host/package.json')

export const ownPackage: OwnPackage = { ...require(file), folder: dirname(file) }

export const { version } = ownPackage
