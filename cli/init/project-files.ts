// The files of a new server, by what was chosen.
import { ownPackage } from '../version.ts'
import type { Choices } from './choices.ts'
import { withoutScope } from './package-name.ts'
import { nodeFor, packagesFor, replacementsFor } from './stores.ts'
import { jsonText, readTemplate } from './templates.ts'
import type { NewFiles } from './write-new.ts'

/** What this package itself is built and tested with. */
export function versionOf(name: string): string {
  const { dependencies, devDependencies } = ownPackage
  return dependencies[name] ?? devDependencies[name] ?? '*'
}

export const versionsOf = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map(name => [name, versionOf(name)]))

/** npm takes it as it is; the test runner finds the files, and tsx lets it read TypeScript. */
export const TEST_SCRIPT = 'node --import tsx --test test/*.test.ts'

/** What the tests call the server with, and what the log is read with; the authorization server for development. */
const OPTIONAL = ['@modelcontextprotocol/client', 'pino-pretty'] as const
const OF_PROTECTED = ['oidc-provider'] as const

const manifestOf = ({ name, isProtected, store }: Choices): object => ({
  name,
  version: '0.1.0',
  private: true,
  type: 'module',
  engines: { node: nodeFor(store) },
  scripts: { dev: 'mcp-host dev', start: 'mcp-host start', check: 'tsc && mcp-host check', test: TEST_SCRIPT },
  dependencies: { ...versionsOf(...packagesFor(store)), 'mcp-host': `^${ownPackage.version}` },
  devDependencies: versionsOf(
    ...[...OPTIONAL, ...(isProtected ? OF_PROTECTED : []), '@types/node', 'tsx', 'typescript'].sort(),
  ),
})

/** Strict, for Node, and nothing is written: tsx runs the sources as they are. */
export const COMPILER_OPTIONS = {
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  module: 'nodenext',
  strict: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: true,
} as const

const TSCONFIG = {
  compilerOptions: { ...COMPILER_OPTIONS, allowImportingTsExtensions: true, noEmit: true },
  include: ['**/*.ts'],
}

/** In the order in which they are listed. */
export function projectFiles(choices: Choices): NewFiles {
  const { name, format, isProtected, store } = choices
  const config = `mcp.config.${format}`
  const replaced = [...replacementsFor(store, format), ['my-server', withoutScope(name)], ['CONFIG', config]] as const
  const common = (file: string) => readTemplate(`project/${file}`, replaced)
  const own = (file: string) => readTemplate(`${isProtected ? 'protected' : 'open'}/${file}`, replaced)
  const serverTest = own('test/server.test.ts')
  return new Map([
    [config, own(config)],
    ['tools/days_between.ts', common('tools/days_between.ts')],
    ['tools/server_status.ts', common('tools/server_status.ts')],
    ['test/tools.test.ts', common('test/tools.test.ts')],
    ['test/server.test.ts', format === 'ts' ? serverTest : withConfigFile(serverTest, config)],
    ['package.json', jsonText(manifestOf(choices))],
    ['tsconfig.json', jsonText(TSCONFIG)],
    ['.env.example', common('env.example')],
    ['.gitignore', common('gitignore')],
    ['README.md', own('README.md')],
  ])
}

/** A config that cannot be imported is named. */
const withConfigFile = (test: string, config: string): string =>
  test.replace("import config from '../mcp.config.ts'", `\nconst config = '${config}'`)
