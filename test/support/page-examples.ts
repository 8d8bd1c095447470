// Reads the examples of a docs page. The first line of each names its file: `// price.ts`.
import { readFileSync } from 'node:fs'

export interface PageExample {
  readonly file: string
  readonly text: string
}

/** Every TypeScript block of the page. Throws if one names no file. */
export function readExamples(page: string): PageExample[] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  return [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, block = '']) => {
    const [, file] = /^\/\/ ([\w.-]+\.ts)\n/.exec(block) ?? []
    if (file === undefined) throw new Error(`docs/${page} has an example that names no file: ${block.slice(0, 80)}`)
    return { file, text: block }
  })
}
