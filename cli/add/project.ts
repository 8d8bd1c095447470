// The project that something is added to: its config and toolsets, its language, its folders, and what runs its tests.
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join, relative, resolve } from 'node:path'
import { glob, isDynamicPattern } from 'tinyglobby'
import { sourceOf } from '../../core/config/define-config.ts'
import { loadConfig } from '../../core/config/load-config.ts'
import { utf8Text } from '../../core/http/utf8-text.ts'
import { isObject } from '../../core/index.ts'

export interface Project {
  /** Of the config, absolute. */
  readonly folder: string
  readonly configName: string
  /** Of files that are added: that of the toolsets' own, else the config's. */
  readonly extension: '.ts' | '.js' | '.mjs'
  readonly runner: TestRunner
  /** What its package.json names. */
  readonly packages: ReadonlySet<string>
  /** The sources of each toolset that are paths. */
  readonly toolsets: ReadonlyMap<string, readonly string[]>
}

export type TestRunner = 'node:test' | 'vitest' | 'mocha'

function toolsetsOf(config: unknown): Map<string, string[]> {
  const toolsets = isObject(config) && isObject(config['toolsets']) ? config['toolsets'] : {}
  return new Map(
    Object.entries(toolsets).map(([name, toolset]) => [
      name,
      [sourceOf(toolset)].flat().filter((entry): entry is string => typeof entry === 'string'),
    ]),
  )
}

/** A project of TypeScript may have a config in YAML. */
function extensionOf(folder: string, configName: string, sources: readonly string[]): Project['extension'] {
  const used = [...sources, configName].map(name => extname(name))
  const found = used.find((extension): extension is Project['extension'] => /^\.(?:ts|js|mjs)$/.test(extension))
  return found ?? (existsSync(join(folder, 'tsconfig.json')) ? '.ts' : '.js')
}

function packagesOf(folder: string): ReadonlySet<string> {
  try {
    const manifest: unknown = JSON.parse(utf8Text(readFileSync(join(folder, 'package.json'), 'utf8')))
    if (!isObject(manifest)) return new Set()
    const { dependencies, devDependencies } = manifest
    return new Set([dependencies, devDependencies].flatMap(list => (isObject(list) ? Object.keys(list) : [])))
  } catch {
    return new Set()
  }
}

/** By what its package.json has; that of Node where it says nothing. */
const runnerOf = (packages: ReadonlySet<string>): TestRunner =>
  (['vitest', 'mocha'] as const).find(name => packages.has(name)) ?? 'node:test'

/** Finds the config as `start` does, and reads it. Throws a StartError (exit code 2) where there is none. */
export async function findProject(cwd: string, config: string | undefined): Promise<Project> {
  const loaded = await loadConfig({ cwd, ...(config !== undefined && { file: config }) })
  const folder = dirname(resolve(cwd, loaded.file))
  const configName = basename(loaded.file)
  const toolsets = toolsetsOf(loaded.config)
  const extension = extensionOf(folder, configName, [...toolsets.values()].flat())
  const packages = packagesOf(folder)
  return { folder, configName, extension, runner: runnerOf(packages), packages, toolsets }
}

/** Where the project keeps such files: the folder of that name among its toolsets' paths, else that name. */
export function folderFor({ toolsets, folder }: Project, name: string): string {
  const folders = [...toolsets.values()].flat().map(source => dirname(relative(folder, resolve(folder, source))))
  const own = folders
    .map(path => path.replaceAll('\\', '/'))
    .find(path => basename(path) === name && !isDynamicPattern(path))
  return own === undefined || own.startsWith('..') ? name : own
}

/** Whether a toolset takes the file, which is there by now: by the same search as a start's. */
export async function isServed({ toolsets, folder }: Project, file: string): Promise<boolean> {
  const sources = [...toolsets.values()].flat()
  const paths = sources.filter(source => !isDynamicPattern(source)).map(source => resolve(folder, source))
  const found = await glob(
    sources.filter(source => isDynamicPattern(source)),
    { cwd: folder, absolute: true },
  )
  return [...paths, ...found].map(path => resolve(path)).includes(resolve(folder, file))
}
