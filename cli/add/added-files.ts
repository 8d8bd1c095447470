// The files of what `add` adds, and the lines that put it into the config.
import { posix } from 'node:path'
import { capitalize, toIdentifier } from '../init/package-name.ts'
import { readTemplate } from '../init/templates.ts'
import type { NewFiles } from '../init/write-new.ts'
import { folderFor, type Project, type TestRunner } from './project.ts'

export const KINDS = ['tool', 'resource', 'prompt', 'plugin'] as const
export type Kind = (typeof KINDS)[number]
export const isKind = (text: string): text is Kind => (KINDS as readonly string[]).includes(text)

const NODE_TEST = "import { test } from 'node:test'"
const RUNNERS: Readonly<Record<TestRunner, string>> = {
  'node:test': NODE_TEST,
  vitest: "import { test } from 'vitest'",
  mocha: "import { it as test } from 'mocha'",
}

export interface Added {
  readonly files: NewFiles
  /** The path of the one that is no test. */
  readonly main: string
  /** What is left to do where no toolset takes it. */
  readonly use: string
}

/** Without what would make a file hidden, a folder above, or a declaration. */
const fileNameOf = (name: string): string => name.replace(/^[^A-Za-z0-9]+/, '').replaceAll('.', '-')

/** Flow lists of YAML take single quotes as JavaScript does. */
function useOf(kind: Kind, identifier: string, main: string, { configName, toolsets }: Project): string {
  const isJson = configName.endsWith('.json')
  const quote = (text: string) => (isJson ? `"${text}"` : `'${text}'`)
  if (kind !== 'plugin') {
    const [toolset = 'main'] = toolsets.keys()
    const sources = [...(toolsets.get(toolset) ?? []), `./${main}`].map(quote).join(', ')
    const key = isJson ? quote(toolset) : toolset
    return `No toolset of ${configName} takes it yet. Put it in there, such as:\n  ${key}: [${sources}]`
  }
  const told = `${configName} does not know it yet. Put it in there:`
  if (/\.(?:json|ya?ml)$/.test(configName))
    return `${told}\n  under plugins:  ${isJson ? quote(`./${main}`) : `./${main}`}: {}`
  const lines = [
    `at the top:     import { ${identifier} } from './${main}'`,
    `under plugins:  ${identifier}: ${identifier}(),`,
  ]
  return `${told}\n${lines.map(line => `  ${line}`).join('\n')}`
}

export function addedFiles(kind: Kind, name: string, project: Project): Added {
  const { extension, runner } = project
  const identifier = toIdentifier(name, kind)
  const file = fileNameOf(name)
  const main = posix.join(folderFor(project, `${kind}s`), `${file}${extension}`)
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
  return { files, main, use: useOf(kind, identifier, main, project) }
}
