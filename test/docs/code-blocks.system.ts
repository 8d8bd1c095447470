// Tests that code blocks of the docs compile and that config blocks start, as completed by test/support/doc-blocks.ts.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { transformSync } from 'esbuild'
import { parse } from 'yaml'
import { loadConfig } from '../../core/config/load-config.ts'
import { createHost } from '../../core/create-host.ts'
import type { Config } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import { blockLocation, type DocBlock, PAGES, ROOT, readBlocks } from '../support/doc-blocks.ts'
import { inPath } from '../support/needs-program.ts'
import { isBuilt } from '../support/packed.ts'
import { startRedis, stopRedis } from '../support/redis-server.ts'
import { createTestLog } from '../support/start-host.ts'
import {
  type BlockFile,
  folderOf,
  wholeConfig,
  writeBlock,
  writeMissingConfigs,
  writeToolFiles,
} from './complete-blocks.ts'

/** What some configs read. */
const ENVIRONMENT = {
  INTROSPECTION_SECRET: 'of the introspection',
  ORDERS_KEY: 'of an API',
  HEALTH_TOKEN: 'a-token-of-the-operator',
  DESK_SECRET: 'of a client that the bridge knows, in a config',
  PROVIDER_SECRET: 'of the application at the provider',
}
before(() => Object.assign(process.env, ENVIRONMENT))
after(() => {
  for (const name of Object.keys(ENVIRONMENT)) delete process.env[name]
})

// A run that was killed leaves it behind: tsconfig.json, .gitignore and test/support/compiled.ts pass it over.
const folder = mkdtempSync(join(import.meta.dirname, 'blocks-'))
after(() => rmSync(folder, { recursive: true, force: true }))
after(stopRedis)

const blocks = [...PAGES, 'site/index.md'].flatMap(page => readBlocks(page))
const inLanguage = (...languages: string[]) => blocks.filter(({ language }) => languages.includes(language))
const files = inLanguage('ts').map(block => writeBlock(block, folder))
writeMissingConfigs(files, folder)
// The type of this package, which is not installed here.
const KOA_HELMET =
  "declare module 'koa-helmet' { export default function helmet(options?: object): import('koa').Middleware }"
writeFileSync(join(folder, 'koa-helmet.d.ts'), KOA_HELMET)

/** Returns compiler errors with their lines in the pages. Compiling against the declarations of a build is faster. */
function compile(): string[] {
  const tsconfig = {
    extends: '../../../tsconfig.json',
    // A page shows what something is, and not what is done with it.
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, ...(isBuilt() && { paths: {} }) },
    // The second has what sources of this repository need.
    include: ['**/*.ts', '../../../plugins/**/*.d.ts'],
    exclude: [],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
  const compiler = join(ROOT, 'node_modules/.bin/tsc')
  const { stdout } = spawnSync(compiler, ['-p', folder, '--checkers', '1', '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  })
  return stdout.split('\n').flatMap(told => {
    const [, name, line, text] = /^(\S+?)\((\d+),\d+\): (.*)$/.exec(told) ?? (told === '' ? [] : [told, '', '0', told])
    if (text === undefined) return []
    const found = files.find(({ file }) => relative(folder, file) === name)
    if (!found) return [`${name}: ${text}`]
    return [
      `${blockLocation({ page: found.block.page, line: found.block.line + Number(line) - found.before - 1 })}: ${text}`,
    ]
  })
}

/** Whether a block is a config, or shows some keys of one. */
function isConfig({ language, code, in: place }: DocBlock): boolean {
  if (place !== undefined || language === 'ts')
    return place !== undefined || /^export default defineConfig\(/m.test(code)
  const value: unknown = parse(code)
  return isObject(value) && 'toolsets' in value && 'routes' in value
}

async function configIn(block: DocBlock, written: BlockFile | undefined): Promise<Config> {
  if (written) return ((await import(pathToFileURL(written.file).href)) as { default: Config }).default
  const directory = folderOf(block, folder)
  mkdirSync(directory, { recursive: true })
  if (block.in !== undefined) return wholeConfig(parse(block.code) as object)
  const file = join(directory, `block-${block.line}.${block.language}`)
  writeFileSync(file, block.code)
  return (await loadConfig({ cwd: folder, file })).config as Config
}

const usesRedis = ({ plugins = {} }: Config) => Object.keys(plugins).some(name => name.endsWith('-redis'))

/** An older Node refuses it, as its page says. */
const lacksDatabase = ({ plugins = {}, store }: Config) =>
  ('store-sqlite' in plugins || (isObject(store) && 'sqlite' in store)) && !isBuiltin('node:sqlite')

/** The port of metrics may be another's on this machine. */
const metricsAnywhere = ({ plugins }: Config) => {
  const metrics = plugins?.['metrics']
  return isObject(metrics) && !('path' in metrics) ? { metrics: { ...metrics, port: 0 } } : {}
}

/** What configs with the plugin `skills` serve. */
const SKILLS = join(ROOT, 'examples/skills/skills')

/** The document of configs with the plugin `openapi`. */
const ORDERS = {
  openapi: '3.1.0',
  info: { title: 'Orders', version: '1.0.0' },
  paths: {
    '/orders': {
      get: { operationId: 'listOrders', tags: ['orders'], responses: {} },
      post: {
        tags: ['orders'],
        parameters: ['channel', 'currency', 'sku'].map(name => ({ name, in: 'query', schema: { type: 'string' } })),
        responses: {},
      },
    },
  },
  servers: [{ url: 'https://orders.example' }],
  components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-key' } } },
}

/** Starts it as `mcp-host start` would, with tool files where it names some, and ends it. Throws what stops the start. */
async function startAndEnd(config: Config, directory: string): Promise<unknown> {
  writeToolFiles(config.toolsets ?? {}, directory)
  if ('skills' in (config.plugins ?? {})) cpSync(SKILLS, join(directory, 'skills'), { recursive: true })
  if ('openapi' in (config.plugins ?? {})) writeFileSync(join(directory, 'orders.openapi.yaml'), JSON.stringify(ORDERS))
  // Its certificate is not on this machine.
  const { tls: _, ...http } = config.http ?? {}
  const making = createHost(
    {
      ...config,
      http: { ...http, host: '127.0.0.1', port: 0 },
      plugins: { 'transport-streamable': {}, ...config.plugins, ...metricsAnywhere(config) },
      secrets: ['a secret for tests, long enough to be one'],
      ...(usesRedis(config) && { redis: { ...config.redis, url: (await redis())?.url ?? 'redis://127.0.0.1:1' } }),
    },
    { directory, log: createTestLog() },
  )
  if (lacksDatabase(config)) {
    const problem = await making.catch((error: Error) => error.message)
    return expect(problem).to.include('Node 22.13')
  }
  const host = await making
  // Where there is no Redis it goes as far as `mcp-host check`.
  if (!usesRedis(config) || inPath('redis-server')) await host.listen()
  await host.close({ grace: 0 })
}

let starting: ReturnType<typeof startRedis> | undefined
const redis = async () => {
  if (inPath('redis-server')) starting ??= startRedis()
  return starting
}

describe('Code blocks of the docs', () => {
  it('compile if TypeScript', () => {
    expect(compile().join('\n')).to.equal('')
  })

  const configs = inLanguage('ts', 'yaml', 'json').filter(isConfig)
  for (const block of configs) {
    it(`start if configs: ${blockLocation(block)}`, async () => {
      const written = files.find(file => file.block === block)
      return startAndEnd(await configIn(block, written), folderOf(block, folder))
    })
  }

  it('parse if JavaScript, JSON or YAML', () => {
    for (const { code } of inLanguage('js')) transformSync(code, { loader: 'js' })
    for (const { language, code } of inLanguage('json', 'yaml')) language === 'json' ? JSON.parse(code) : parse(code)
    expect(configs.length).to.be.above(20)
  })
})
