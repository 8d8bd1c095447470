// The files of a plugin that is published as a package.
import { ownPackage } from '../version.ts'
import type { Choices } from './choices.ts'
import { capitalize, toIdentifier, withoutScope } from './package-name.ts'
import { COMPILER_OPTIONS, TEST_SCRIPT, versionsOf } from './project-files.ts'
import { jsonText, readTemplate } from './templates.ts'
import type { NewFiles } from './write-new.ts'

const manifestOf = (name: string): object => ({
  name,
  version: '0.1.0',
  description: 'A plugin for mcp-host: says in the log who calls which tool.',
  keywords: ['mcp', 'model-context-protocol', 'mcp-host', 'mcp-host-plugin'],
  type: 'module',
  engines: { node: '>=20.19' },
  exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './package.json': './package.json' },
  files: ['dist'],
  scripts: { build: 'tsc -p tsconfig.build.json', check: 'tsc', test: TEST_SCRIPT, prepack: 'npm run build' },
  // One copy for the host and all its plugins: the project that installs this one has it.
  peerDependencies: { 'mcp-host': `^${ownPackage.version}` },
  devDependencies: {
    'mcp-host': `^${ownPackage.version}`,
    ...versionsOf('@modelcontextprotocol/client', '@types/node', 'tsx', 'typescript'),
  },
})

const TSCONFIG = {
  compilerOptions: { ...COMPILER_OPTIONS, rewriteRelativeImportExtensions: true, noEmit: true },
  include: ['src', 'test'],
}

const BUILD = {
  extends: './tsconfig.json',
  compilerOptions: { noEmit: false, declaration: true, rootDir: 'src', outDir: 'dist' },
  include: ['src'],
}

/** `audit` of `mcp-host-audit`, `@acme/mcp-host-audit` and `mcp-host-plugin-audit`. */
const shortName = (name: string): string => withoutScope(name).replace(/^(?:mcp-host-)?(?:plugin-)?(?=.)/, '')

export function pluginFiles({ name }: Choices): NewFiles {
  const short = shortName(name)
  const identifier = toIdentifier(short, 'plugin')
  const replaced = [
    ['mcp-host-example', name],
    ['ExampleName', capitalize(identifier)],
    ['exampleName', identifier],
    ['example_name', short],
    ['./plugin.ts', '../src/index.ts'],
  ] as const
  return new Map([
    ['src/index.ts', readTemplate('add/plugin.ts', replaced)],
    ['test/index.test.ts', readTemplate('add/plugin.test.ts', replaced)],
    ['package.json', jsonText(manifestOf(name))],
    ['tsconfig.json', jsonText(TSCONFIG)],
    ['tsconfig.build.json', jsonText(BUILD)],
    ['.gitignore', 'node_modules/\ndist/\n'],
    ['README.md', readTemplate('plugin/README.md', replaced)],
  ])
}
