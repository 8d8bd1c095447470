// Writes `llms.txt` (https://llmstxt.org): the pages of the sidebar, each with the first sentence of its text.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DefaultTheme } from 'vitepress'

/** Returns the first sentence of a page, without links. */
function summarize(markdown: string): string {
  const paragraphs = markdown.split(/\n\s*\n/).map(text => text.trim())
  const first = paragraphs.find(text => /^[A-Z`[]/.test(text)) ?? ''
  const plain = first.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\s+/g, ' ')
  return /^.*?[.:](?= |$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain
}

export interface LlmsText {
  readonly title: string
  readonly description: string
  readonly sections: readonly DefaultTheme.SidebarItem[]
  /** The Markdown file of each page. */
  readonly files: ReadonlyMap<string, string>
  /** The folder of these files. */
  readonly folder: string
}

export function writeLlmsText({ title, description, sections, files, folder }: LlmsText): void {
  const parts = sections.map(({ text, items = [] }) => {
    const lines = items.map(({ text, link = '' }) => {
      const file = files.get(link) ?? ''
      const summary = summarize(readFileSync(join(folder, file), 'utf8'))
      return `- [${text}](/${file})${summary === '' ? '' : `: ${summary}`}`
    })
    return `## ${text}\n\n${lines.join('\n')}\n`
  })
  writeFileSync(join(folder, 'llms.txt'), `# ${title}\n\n> ${description}\n\n${parts.join('\n')}`)
}
