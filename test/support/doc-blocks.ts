// Reads the documentation pages and their code blocks. HTML comments before a block describe its context:
//   <!-- with: ... -->    code before the block; a line `...` in it is replaced by the block
//   <!-- in: config -->   the block contains config keys, and the rest of a config is added; `in: plugins`: keys of `plugins`
//   <!-- file: name -->   the name under which other blocks of the page import it; a first line `// name.ts` does the same

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { globSync } from 'tinyglobby'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Paths from the repository root. Files that a skill consists of are not pages. */
export const PAGES: readonly string[] = globSync(['README.md', 'docs/**/*.md', 'examples/**/*.md'], {
  cwd: ROOT,
  ignore: ['examples/skills/skills/**'],
}).sort()

export interface DocBlock {
  readonly page: string
  /** The line number of its first line of code. */
  readonly line: number
  readonly language: string
  readonly code: string
  readonly with: string | undefined
  readonly in: string | undefined
  readonly file: string | undefined
}

export const readPage = (page: string): string => readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8')

const BLOCK =
  /(?<notes>(?:^ *<!--(?:(?!-->)[\s\S])*-->\n+)*)^(?<indent> *)```(?<language>\w*)\n(?<code>[\s\S]*?)^ *```$/gm
const NOTE = /<!-- (with|in|file): ?([\s\S]*?)\s*-->/g

export function readBlocks(page: string, text = readPage(page)): DocBlock[] {
  return [...text.matchAll(BLOCK)].map(({ index, groups = {}, 0: whole }) => {
    const { notes = '', indent = '', language = '', code = '' } = groups
    const found = Object.fromEntries([...notes.matchAll(NOTE)].map(([, name, said]) => [name, said]))
    const before = text.slice(0, index) + whole.slice(0, notes.length)
    return {
      page,
      line: before.split('\n').length + 1,
      language,
      code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      with: found['with'],
      in: found['in'],
      file: found['file'] ?? /^\/\/ ([\w.-]+\.ts)$/m.exec(code.split('\n', 1)[0] ?? '')?.[1],
    }
  })
}

/** File and line, for messages. */
export const blockLocation = ({ page, line }: Pick<DocBlock, 'page' | 'line'>): string => `${page}:${line}`
