// Finds and reads the config: TypeScript, JavaScript, JSON or YAML.
import { existsSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { dirname, extname, join, resolve } from 'node:path'
import type { Loader } from 'cosmiconfig'
import { errorText, StartError } from '../http/errors.ts'
import { isUtf16, UTF16_ERROR } from '../http/utf8-text.ts'
import { importModule } from './import-module.ts'
import { type Locate, locateInCode } from './locate-in-code.ts'
import { filesRead } from './module-graph.ts'
import { ConfigError } from './problems.ts'

export interface LoadedConfig {
  readonly file: string
  readonly config: unknown
  /** Returns the line of a key; undefined if uncertain. */
  readonly locate: Locate
  /** True for a config that a program created, without a file. */
  readonly isInline?: true
  /** Other configs in the same folder, which are ignored. */
  readonly others?: readonly string[]
}

const CODE = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs']
const EXTENSIONS = ['.ts', '.mts', '.js', '.mjs', '.cjs', '.json', '.yaml', '.yml']

const assertUtf8 = (file: string, source: string): void => {
  if (isUtf16(source)) throw stop('MH1004', file, undefined, UTF16_ERROR)
}

// Loaders wrap the config in an object, because cosmiconfig interprets `$import` in a config.
const loaders: Record<string, Loader> = {
  ...Object.fromEntries(CODE.map(extension => [extension, loadCode])),
  '.json': (file, source) => loadDocument(file, source, 'readJson'),
  '.yaml': (file, source) => loadDocument(file, source, 'readYaml'),
  '.yml': (file, source) => loadDocument(file, source, 'readYaml'),
}

/**
 * Loads `file`, or `mcp.config.*` from `cwd` up to the nearest package.json. Throws a StartError (exit code 2) for a missing or
 * unreadable config.
 */
export async function loadConfig({ cwd, file }: { cwd: string; file?: string | undefined }): Promise<LoadedConfig> {
  const path = file === undefined ? undefined : resolve(cwd, file)
  if (path !== undefined && !(extname(path) in loaders)) {
    throw stop('MH1003', path, undefined, `unknown config format; use ${EXTENSIONS.join(', ')}`)
  }
  const found = await find(cwd, path)
  if (path === undefined) await assertReadable(cwd, found?.filepath)
  if (found === null) {
    throw new StartError(
      'MH1001',
      `No config found in ${cwd} or above it, up to the nearest package.json. Create mcp.config.ts ` +
        `(or ${EXTENSIONS.slice(1).join(', ')}), start a project with mcp-host init, or select a config with --config.`,
      { exitCode: 2 },
    )
  }
  if (found.isEmpty)
    throw stop('MH1005', found.filepath, undefined, 'the file is empty; it needs server, toolsets and routes')
  const others = path === undefined ? findOtherConfigs(found.filepath) : []
  return { ...(found.config as Omit<LoadedConfig, 'file'>), file: found.filepath, others }
}

const findOtherConfigs = (file: string): string[] =>
  SEARCHED.map(name => join(dirname(file), name)).filter(other => other !== file && existsSync(other))

export const SEARCHED = EXTENSIONS.map(extension => `mcp.config${extension}`)

async function load(path: string) {
  const source = await readFile(path, 'utf8')
  const isEmpty = source.trim() === ''
  return { filepath: path, isEmpty, config: isEmpty ? undefined : await loaders[extname(path)]?.(path, source) }
}

async function search(cwd: string) {
  const options = {
    searchPlaces: SEARCHED,
    searchStrategy: 'project',
    cache: false,
    ignoreEmptySearchPlaces: false,
  } as const
  const explore = await import('cosmiconfig')
    .then(({ cosmiconfig }) => cosmiconfig('mcp', { ...options, loaders }))
    .catch(() => undefined)
  if (explore) return explore.search(cwd)
  // cosmiconfig requires a home folder, which a container can lack, and package.json files without a byte order mark.
  const file = candidatesFrom(cwd).find(candidate => existsSync(candidate))
  return file === undefined ? null : load(file)
}

/** Throws if an earlier candidate is unreadable: cosmiconfig would skip it and another config would be served. */
async function assertReadable(cwd: string, found: string | undefined): Promise<void> {
  for (const file of candidatesFrom(cwd)) {
    if (file === found) return
    const { code } = await open(file).then(
      async handle => ({ code: await handle.close() }),
      (error: NodeJS.ErrnoException) => error,
    )
    if (code === 'EACCES') throw stop('MH1002', file, undefined, 'cannot be read: EACCES; let this user read it')
  }
}

function candidatesFrom(folder: string): string[] {
  const files = SEARCHED.map(name => join(folder, name))
  const isLast = existsSync(join(folder, 'package.json')) || dirname(folder) === folder
  return isLast ? files : [...files, ...candidatesFrom(dirname(folder))]
}

async function find(cwd: string, path: string | undefined) {
  try {
    return await (path === undefined ? search(cwd) : load(path))
  } catch (error) {
    if (error instanceof StartError) throw error
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const text = isAbsent ? 'there is no such file; check --config' : `cannot be read: ${errorText(error)}`
    throw stop('MH1002', path ?? cwd, undefined, text, error)
  }
}

const stop = (code: string, file: string, line: number | undefined, text: string, cause?: unknown): StartError =>
  new ConfigError([{ code, file, ...(line !== undefined && { line }), text, cause }])

async function loadCode(file: string, source: string): Promise<Omit<LoadedConfig, 'file'>> {
  assertUtf8(file, source)
  const exported = await importModule(file).catch(async (cause: unknown) => {
    const { explainImport } = await import('./explain-import.ts')
    throw new ConfigError([explainImport(file, cause)])
  })
  if (!('default' in exported)) {
    throw stop('MH1005', file, undefined, 'no default export; write `export default defineConfig({ … })`')
  }
  return { config: exported['default'], locate: locateInCode(source) }
}

async function loadDocument(file: string, source: string, format: 'readJson' | 'readYaml') {
  filesRead.add(file)
  assertUtf8(file, source)
  const { ReadError, [format]: read } = await import('./read-document.ts')
  try {
    const { config, locate } = read(source)
    return { config: withoutSchemaLink(config), locate }
  } catch (error) {
    if (error instanceof ReadError) throw stop('MH1006', file, error.line, error.message)
    throw error
  }
}

function withoutSchemaLink(config: unknown): unknown {
  if (typeof config !== 'object' || config === null || !('$schema' in config)) return config
  const { $schema: _, ...rest } = config
  return rest
}
