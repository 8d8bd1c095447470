// Makes files of code blocks: each with what its page says it needs, and with what a config needs that is shown in part.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../../core/index.ts'
import type { DocBlock } from '../support/doc-blocks.ts'

export interface BlockFile {
  readonly block: DocBlock
  /** Its whole path. */
  readonly file: string
  /** Lines before those of the block. */
  readonly before: number
}

/** What a config has where a page shows only some of its keys. */
const REST = {
  server: { name: 'acme-tools', version: '1.0.0' },
  toolsets: { clock: './tools/clock.ts' },
  routes: { '/': { toolsets: 'clock' } },
  plugins: { 'transport-streamable': {} },
}

const CONFIG = `import { defineConfig } from 'mcp-host'\nexport default defineConfig(${JSON.stringify(REST)})\n`

/** Keys at the beginning of a line. */
const keysOf = (code: string) => [...code.matchAll(/^'?([\w-]+)'?:/gm)].map(([, key = '']) => key)

/** `...` stands for the block. */
function frameOf({ code, in: place, with: lines = '' }: DocBlock): string {
  if (place !== undefined) {
    const given = place === 'plugins' ? ['plugins'] : keysOf(code)
    const rest = Object.entries(REST).filter(([key]) => !given.includes(key))
    const inner = place === 'plugins' ? "plugins: { 'transport-streamable': {},\n...\n}," : '...'
    const keys = rest.map(([key, value]) => `${key}: ${JSON.stringify(value)},`).join(' ')
    return `import { defineConfig } from 'mcp-host'\n${lines}\nexport default defineConfig({ ${keys}\n${inner}\n})\n`
  }
  return /^ *\.\.\.$/m.test(lines) ? lines : `${lines}\n...\n`
}

/** Where all blocks of a page are, so that one can import another. */
export const folderOf = ({ page }: DocBlock, folder: string): string => join(folder, page.replaceAll(/[/.]/g, '-'))

/** Writes a block of TypeScript into the folder of its page. */
export function writeBlock(block: DocBlock, folder: string): BlockFile {
  const [before = '', after = ''] = frameOf(block).split(/^ *\.\.\.$/m)
  const directory = folderOf(block, folder)
  const named = join(directory, block.file ?? '')
  // A page may show a file twice.
  const isNamed = block.file !== undefined && !existsSync(named)
  const file = isNamed ? named : join(directory, `block-${block.line}.ts`)
  mkdirSync(dirname(file), { recursive: true })
  const text = `${before}${block.code}${after}`
  writeFileSync(file, /^(import|export) /m.test(text) ? text : `${text}\nexport {}\n`)
  return { block, file, before: before.split('\n').length - 1 }
}

/** A config of which the page shows all, or some keys. */
export const wholeConfig = (shown: object): Config => ({ ...REST, ...shown }) as Config

/** Programs import a config that their page does not show. */
export function writeMissingConfigs(files: readonly BlockFile[], folder: string): void {
  for (const { block } of files) {
    const file = join(folderOf(block, folder), 'mcp.config.ts')
    if (!existsSync(file)) writeFileSync(file, CONFIG)
  }
}

/** Writes what these toolsets are said to be loaded from: files with a tool or two. */
export function writeToolFiles(toolsets: Readonly<Record<string, unknown>>, folder: string): void {
  const named = Object.entries(toolsets).flatMap(([name, source]) =>
    [source].flat().flatMap(file => (typeof file === 'string' ? [[name, file] as const] : [])),
  )
  for (const [name, file] of named) {
    const path = join(folder, file.replace('*', 'one'))
    // A block of the page may be the very file.
    if (existsSync(path)) continue
    mkdirSync(dirname(path), { recursive: true })
    const tools = [name, `purge_${name}`].map(tool => `defineTool({ name: '${tool}', handler: () => 'done' })`)
    writeFileSync(path, `import { defineTool } from 'mcp-host'\nexport default [${tools.join(', ')}]\n`)
  }
}
