// Prompts for choices that the flags of `init` leave open.
import { existsSync, readdirSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { cancel, confirm, intro, isCancel, select, text } from '@clack/prompts'
import {
  type Choices,
  type ConfigFormat,
  DEFAULT_NAME,
  DEFAULT_PLUGIN_NAME,
  defaultStore,
  type Given,
  hasSqlite,
  type Store,
  toPackageName,
} from './project-files.ts'

const INTERRUPTED = 130

/** Ctrl-C ends the process before any file is written. */
async function orExit<T>(question: Promise<T>): Promise<Exclude<T, symbol>> {
  const answer = await question
  if (!isCancel(answer)) return answer as Exclude<T, symbol>
  cancel('Nothing was written.')
  return process.exit(INTERRUPTED)
}

const isEmpty = (folder: string) => !existsSync(folder) || readdirSync(folder).every(name => name === '.git')

const ask = (message: string, initialValue: string) =>
  orExit(text({ message, initialValue, validate: value => (value?.trim() ? undefined : 'Type a name.') }))

async function askFormat(): Promise<ConfigFormat> {
  const options = [
    { value: 'ts' as const, label: 'TypeScript', hint: 'typed and completed in every editor' },
    { value: 'yaml' as const, label: 'YAML', hint: 'checked against a schema; tools are TypeScript all the same' },
  ]
  return orExit(select<ConfigFormat>({ message: 'Which config format?', options }))
}

async function askStore(): Promise<Store> {
  const file = {
    value: 'file' as const,
    label: 'In a file',
    hint: 'one machine; kept across restarts, and shared by --workers',
  }
  const without = { ...file, hint: `${file.hint}; takes Node 22.13 or later` }
  const options = [
    hasSqlite() ? file : without,
    { value: 'redis' as const, label: 'In Redis', hint: 'several machines' },
    { value: 'memory' as const, label: 'In memory', hint: 'lost when the process ends' },
  ]
  return orExit(select<Store>({ message: 'Where should sessions be stored?', options, initialValue: defaultStore() }))
}

export const confirmChange = () => orExit(confirm({ message: 'Write these changes?' }))

export async function askChoices(given: Given): Promise<Choices> {
  const { isPlugin = false } = given
  intro(isPlugin ? 'A plugin for mcp-host' : 'An MCP server')
  const fallback = isPlugin ? DEFAULT_PLUGIN_NAME : DEFAULT_NAME
  const folder = given.folder ?? (await ask('In which folder?', isEmpty('.') ? '.' : fallback)).trim()
  const defaultName = toPackageName(basename(resolve(folder)), fallback)
  const name = given.name ?? (await ask('Name?', defaultName)).trim()
  if (isPlugin) return { folder, name, format: 'ts', isProtected: false, store: 'memory', isPlugin }
  const format = given.format ?? (await askFormat())
  const isProtected = given.isProtected ?? (await orExit(confirm({ message: 'Require a login?', initialValue: false })))
  const store = given.store ?? (await askStore())
  return { folder, name, format, isProtected, store, isPlugin }
}
