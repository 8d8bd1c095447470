// `mcp-host add`: adds a tool, resource, prompt or plugin with a test to a project, or an OpenAPI document to its config.

import { existsSync } from 'node:fs'
import { basename, dirname, extname, join, posix, relative, resolve } from 'node:path'
import { glob, isDynamicPattern } from 'tinyglobby'
import { printable } from '../client/text.ts'
import { sourceOf } from '../core/config/define-config.ts'
import { installHint } from '../core/http/optional-packages.ts'
import { isObject } from '../core/plugin.ts'
import { CONFIG_OPTION, defineCommand } from './command.ts'
import { readConfig } from './config.ts'
import { type CommandContext, usage } from './context.ts'
import { readManifest } from './init/existing-package.ts'
import { capitalize, readTemplate, toIdentifier } from './init/project-files.ts'
import { assertFree, writeNew } from './init/write-new.ts'
import { nearestHint } from './text.ts'

type Project = Awaited<ReturnType<typeof findProject>>
type Extension = '.ts' | '.js' | '.mjs'
type TestRunner = 'node:test' | 'vitest' | 'mocha'

function listToolsets(config: unknown): Map<string, string[]> {
  const toolsets = isObject(config) && isObject(config['toolsets']) ? config['toolsets'] : {}
  return new Map(
    Object.entries(toolsets).map(([name, toolset]) => [
      name,
      [sourceOf(toolset)].flat().filter((entry): entry is string => typeof entry === 'string'),
    ]),
  )
}

function findExtension(folder: string, configName: string, sources: readonly string[], { type }: Manifest): Extension {
  const used = [...sources, configName].map(name => extname(name))
  const found = used.find((extension): extension is Extension => /^\.(?:ts|js|mjs)$/.test(extension))
  const extension = found ?? (existsSync(join(folder, 'tsconfig.json')) ? '.ts' : '.js')
  return extension === '.js' && type !== 'module' ? '.mjs' : extension
}

type Manifest = Readonly<Record<string, unknown>>

const listPackages = ({ dependencies, devDependencies }: Manifest): ReadonlySet<string> =>
  new Set([dependencies, devDependencies].flatMap(list => (isObject(list) ? Object.keys(list) : [])))

async function findProject(context: CommandContext, config: string | undefined) {
  const loaded = await readConfig({ config }, context)
  const folder = dirname(resolve(context.cwd, loaded.file))
  const configName = basename(loaded.file)
  const toolsets = listToolsets(loaded.config)
  const manifest = readManifest(folder) ?? {}
  const extension = findExtension(folder, configName, [...toolsets.values()].flat(), manifest)
  const packages = listPackages(manifest)
  const runner: TestRunner = (['vitest', 'mocha'] as const).find(name => packages.has(name)) ?? 'node:test'
  return { folder, configName, extension, runner, packages, toolsets }
}

function selectFolder({ toolsets, folder }: Project, name: string): string {
  const folders = [...toolsets.values()].flat().map(source => dirname(relative(folder, resolve(folder, source))))
  const own = folders
    .map(path => path.replaceAll('\\', '/'))
    .find(path => basename(path) === name && !isDynamicPattern(path))
  return own === undefined || own.startsWith('..') ? name : own
}

async function isServed({ toolsets, folder }: Project, file: string): Promise<boolean> {
  const sources = [...toolsets.values()].flat()
  const found = await glob(
    sources.filter(source => isDynamicPattern(source)),
    { cwd: folder },
  )
  return [...sources, ...found].some(path => resolve(folder, path) === resolve(folder, file))
}

const KINDS = ['tool', 'resource', 'prompt', 'plugin'] as const
type Kind = (typeof KINDS)[number]
const ALL_KINDS = [...KINDS, 'openapi', 'upstream']

const NODE_TEST = "import { test } from 'node:test'"
const RUNNERS: Readonly<Record<TestRunner, string>> = {
  'node:test': NODE_TEST,
  vitest: "import { test } from 'vitest'",
  mocha: "import { it as test } from 'mocha'",
}

function configLines(kind: Kind, identifier: string, main: string, { configName, toolsets }: Project): string {
  const isJson = configName.endsWith('.json')
  const quote = (text: string) => (isJson ? `"${text}"` : `'${text}'`)
  if (kind !== 'plugin') {
    const [toolset = 'main'] = toolsets.keys()
    const sources = [...(toolsets.get(toolset) ?? []), `./${main}`].map(quote).join(', ')
    const key = isJson ? quote(toolset) : toolset
    const instructions = `No toolset in ${configName} contains it yet. Add it, for example:`
    const route = `\n  in a route:      ${isJson ? quote('toolsets') : 'toolsets'}: ${quote(toolset)}`
    return `${instructions}\n  under toolsets:  ${key}: [${sources}]${toolsets.size === 0 ? route : ''}`
  }
  const instructions = `${configName} does not contain it yet. Add:`
  if (/\.(?:json|ya?ml)$/.test(configName))
    return `${instructions}\n  under plugins:  ${isJson ? quote(`./${main}`) : `./${main}`}: {}`
  const lines = [
    `at the top:     import { ${identifier} } from './${main}'`,
    `under plugins:  ${identifier}: ${identifier}(),`,
  ]
  return `${instructions}\n${lines.map(line => `  ${line}`).join('\n')}`
}

function createFiles(kind: Kind, name: string, project: Project) {
  const { extension, runner } = project
  const identifier = toIdentifier(name, kind)
  const file = name.replace(/^[^A-Za-z0-9]+/, '').replaceAll('.', '-')
  const main = posix.join(selectFolder(project, `${kind}s`), `${file}${extension}`)
  const test = posix.join('test', `${file}.${kind}.test${extension}`)
  const replaced = [
    ['ExampleName', capitalize(identifier)],
    ['exampleName', identifier],
    ['example_name', name],
    [NODE_TEST, RUNNERS[runner]],
    [`'./${kind}.ts'`, `'${posix.relative('test', main)}'`],
  ] as const
  const isScript = extension !== '.ts'
  const template = kind === 'plugin' && isScript ? 'add/js/plugin.js' : `add/${kind}.ts`
  const testText = readTemplate(`add/${kind}.test.ts`, replaced)
  const files = new Map([
    [main, readTemplate(template, replaced)],
    [test, isScript ? testText.replace(/^ *\/\/ @ts-expect-error.*\n/m, '') : testText],
  ])
  return { files, main, use: configLines(kind, identifier, main, project) }
}

/** MCP 2025-11-25, "Tool Names"; applied to all kinds. */
const NAME = /^[A-Za-z0-9_.-]{1,128}$/

function readKind(kind: string): Kind {
  const known = KINDS.find(one => one === kind)
  if (known) return known
  throw usage(`cannot add "${printable(kind)}"; give one of ${ALL_KINDS.join(', ')}${nearestHint(kind, ALL_KINDS)}`)
}

async function checkName(kind: Kind, name: string): Promise<void> {
  if (!NAME.test(name) || !/[A-Za-z0-9]/.test(name)) {
    const fits = 'a name has 1 to 128 letters A to Z and a to z, digits, _, - and .'
    throw usage(`"${printable(name, 150)}" is not a ${kind} name that all clients accept: ${fits}`)
  }
  if (kind === 'plugin' && Object.hasOwn((await import('../plugins/index.ts')).builtInPlugins, name))
    throw usage(`"${name}" is a built-in plugin: choose another name`)
}

const CLIENT = '@modelcontextprotocol/client'

export const addCommand = defineCommand({
  summary: 'Add a tool, resource, prompt or plugin with a test, an OpenAPI document, or an MCP server',
  example: 'tool convert_time',
  positionals: ['tool|resource|prompt|plugin|openapi|upstream', 'NAME', '[ARGUMENT...]'],
  options: CONFIG_OPTION,
  notes: `Existing files are never overwritten.

openapi and upstream also add a route:
  mcp-host add openapi FILE
  mcp-host add openapi https://api.example.com/openapi.json
  mcp-host add upstream NAME https://mcp.example.com/mcp
  mcp-host add upstream NAME -- COMMAND ARGUMENT...`,
  async run({ config }, [kindText = '', name = '', ...more], context) {
    const { cwd, print } = context
    if (kindText === 'openapi') {
      if (name === '' || more.length > 0) throw usage('name the OpenAPI document: mcp-host add openapi FILE')
      return (await import('./openapi/add-document.ts')).addDocument({ config }, name, context)
    }
    if (kindText === 'upstream')
      return (await import('./upstream/add-server.ts')).addServer({ config }, [name, ...more], context)
    const kind = readKind(kindText)
    if (more.length > 0) throw usage(`unexpected "${printable(more.join(' '))}"`)
    await checkName(kind, name)
    const project = await findProject(context, config)
    const { files, main, use } = createFiles(kind, name, project)
    assertFree(project.folder, files.keys(), `Choose another name: mcp-host add ${kind} NAME`)
    writeNew(project.folder, files)
    const shown = (path: string) => printable(relative(cwd, join(project.folder, path)))
    print([...files.keys()].map(path => `created ${shown(path)}`).join('\n'))
    const served = kind !== 'plugin' && (await isServed(project, main))
    print(served ? `${project.configName} already serves it.` : use)
    if (kind === 'plugin' && !project.packages.has(CLIENT))
      print(`Its test needs a package that package.json does not contain yet. Run:\n  ${installHint([CLIENT], '-D')}`)
  },
})
