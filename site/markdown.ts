// Extends the HTML of VitePress: labels for tables on narrow screens, and links that download files.
import type { MarkdownRenderer } from 'vitepress'
import { rewriteLink } from './published.ts'

type Token = Parameters<MarkdownRenderer['renderer']['render']>[0][number]

const DOWNLOAD = /(?:^|\/)metrics\/[^/]+\.(?:json|yml)$/

const ROLES: Readonly<Record<string, string>> = {
  table_open: 'table',
  thead_open: 'rowgroup',
  tbody_open: 'rowgroup',
  tr_open: 'row',
  th_open: 'columnheader',
  td_open: 'cell',
}

const readText = (token: Token | undefined): string => token?.children?.map(({ content }) => content).join('') ?? ''

/**
 * Adds the roles that `display: block` removes, and the column heading of each cell as `data-label`. Empty headings, which
 * screen readers cannot use, become cells in the first column and "Description" in others.
 */
function labelTables(md: MarkdownRenderer): void {
  md.core.ruler.push('label-tables', ({ tokens, Token }) => {
    let headings: string[] = []
    let column = 0
    for (const [index, token] of tokens.entries()) {
      const role = ROLES[token.type]
      if (role === undefined) continue
      token.attrSet('role', role)
      const content = tokens[index + 1]
      if (token.type === 'table_open') headings = []
      else if (token.type === 'tr_open') column = 0
      else if (token.type === 'th_open') {
        const isEmpty = content?.content === ''
        headings.push(isEmpty ? '' : readText(content))
        if (!isEmpty) continue
        if (headings.length > 1) {
          const text = new Token('text', '', 0)
          text.content = 'Description'
          content.children = [text]
        } else {
          token.tag = 'td'
          token.attrSet('role', 'cell')
          const close = tokens[index + 2]
          if (close) close.tag = 'td'
        }
      } else if (token.type === 'td_open') {
        const label = headings[column++]
        if (column > 1 && label && content?.content !== '') token.attrSet('data-label', label)
      }
    }
  })
}

/** Rewrites links to pages with other paths. The Grafana dashboard and the alert rules become downloads. */
function rewriteLinks(md: MarkdownRenderer): void {
  const render = md.renderer.rules.link_open
  md.renderer.rules.link_open = (tokens, index, options, env, self) => {
    const link = tokens[index]
    const target = link?.attrGet('href') ?? ''
    if (!/^[a-z]+:/i.test(target)) link?.attrSet('href', rewriteLink(target))
    if (DOWNLOAD.test(target)) link?.attrSet('download', '')
    return render?.(tokens, index, options, env, self) ?? self.renderToken(tokens, index, options)
  }
}

/** Highlights each code block once: pages and the search index render the same text. */
function cacheHighlighting(md: MarkdownRenderer): void {
  const { highlight } = md.options
  const cache = new Map<string, string>()
  md.options.highlight = (...block) => {
    const key = JSON.stringify(block)
    const html = cache.get(key) ?? highlight?.(...block) ?? ''
    cache.set(key, html)
    return html
  }
}

export function extendMarkdown(md: MarkdownRenderer): void {
  cacheHighlighting(md)
  labelTables(md)
  rewriteLinks(md)
}
