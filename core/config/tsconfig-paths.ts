// Explains an import that `paths` of a tsconfig.json map. tsx applies one tsconfig.json to all files.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'jsonc-parser'
import { isObject } from '../mcp/is-object.ts'
import { shortName } from './problems.ts'
import { findAbove } from './type-stripping.ts'

interface Mapping {
  readonly paths: Readonly<Record<string, unknown>>
  /** Absolute; targets are relative to it. */
  readonly base: string
}

/** The `paths` of a tsconfig.json, or of the file that it extends. */
function readMapping(file: string, depth = 0): Mapping | undefined {
  const config: unknown = parse(readFileSync(file, 'utf8'))
  if (!isObject(config)) return undefined
  const { compilerOptions: options, extends: base } = config
  if (isObject(options) && isObject(options['paths'])) {
    const { paths, baseUrl } = options
    return {
      paths: paths as Mapping['paths'],
      base: resolve(dirname(file), typeof baseUrl === 'string' ? baseUrl : '.'),
    }
  }
  if (typeof base !== 'string' || !base.startsWith('.') || depth > 5) return undefined
  const named = resolve(dirname(file), base)
  return readMapping(existsSync(named) ? named : `${named}.json`, depth + 1)
}

/** The part that `*` of a pattern matches; undefined if the pattern does not match. */
function matchOf(pattern: string, specifier: string): string | undefined {
  const [start = '', end] = pattern.split('*')
  if (end === undefined) return pattern === specifier ? '' : undefined
  const isMatch =
    specifier.length >= start.length + end.length && specifier.startsWith(start) && specifier.endsWith(end)
  return isMatch ? specifier.slice(start.length, specifier.length - end.length) : undefined
}

const ENDINGS = ['', '.ts', '.tsx', '.mts', '.cts', '.js', '.mjs', '.cjs', '/index.ts', '/index.js']
const isModule = (file: string) =>
  ENDINGS.some(ending => ending !== '' && existsSync(`${file}${ending}`)) || (/\.\w+$/.test(file) && existsSync(file))

/** Why an import of `specifier` in `folder` fails although `paths` map it; undefined if no `paths` do. */
export function explainPaths(specifier: string, folder: string): string | undefined {
  const file = findAbove('tsconfig.json', folder)
  if (file === undefined) return undefined
  let mapping: Mapping | undefined
  try {
    mapping = readMapping(file)
  } catch {
    return undefined
  }
  for (const [pattern, targets] of Object.entries(mapping?.paths ?? {})) {
    const match = matchOf(pattern, specifier)
    if (mapping === undefined || match === undefined || !Array.isArray(targets)) continue
    const files = targets.map(target =>
      resolve(
        mapping.base,
        String(target).replace('*', () => match),
      ),
    )
    const [first = ''] = files
    if (!files.some(isModule)) return `which ${shortName(file)} maps to ${shortName(first)}, and there is no such file`
    return (
      `which only \`paths\` of ${shortName(file)} map; the tsconfig.json nearest to the config applies to all files; ` +
      'write a relative path, or use `imports` of package.json'
    )
  }
  return undefined
}
