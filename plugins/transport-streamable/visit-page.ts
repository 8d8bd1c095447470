// The page for a browser at an endpoint: how to connect. For a protected route it shows only the URL.
import { createHash } from 'node:crypto'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import { pageHeaders } from '../../core/transport.ts'

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; color: #1b1b1f; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
pre { background: #f2f2f5; border-radius: 6px; padding: .75rem 1rem; overflow-x: auto }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #17171a } pre { background: #26262b } a { color: #9db8ff } }
`

const HEADERS = pageHeaders(`sha256-${createHash('sha256').update(STYLE).digest('base64')}`)

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** The URL without shell metacharacters, since sh, cmd and PowerShell quote differently. IPv6 brackets stay. */
const plainUrl = (url: string): string =>
  new URL(url).href.replace(/[^\w%:/.~@+=[\]-]/g, found => `%${found.charCodeAt(0).toString(16).toUpperCase()}`)

const shellWord = (plain: string) => (plain.includes('[') ? `"${plain}"` : plain)

const block = (text: string) => `<pre><code>${escapeHtml(text)}</code></pre>`

const nameOf = (text: string) => text.replace(/[^\w-]+/g, '-').replace(/^-+|-+$/g, '') || 'mcp-server'

interface Visit {
  readonly url: string
  readonly server: string | undefined
}

function pageText({ url, server }: Visit): string {
  const name = nameOf(server ?? 'mcp-server')
  const word = shellWord(url)
  const title = server === undefined ? 'An MCP server' : `${server}: an MCP server`
  const config = JSON.stringify({ mcpServers: { [name]: { url } } }, undefined, 2)
  const guarded = [
    '<p>It asks for a login. Clients open a page for that by themselves; to try it from a terminal:</p>',
    block(`npx -y mcp-host login ${word}\nnpx -y mcp-host list ${word}`),
  ]
  const open = ['<p>To see what it offers, from a terminal:</p>', block(`npx -y mcp-host list ${word}`)]
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><main>
<h1>${escapeHtml(title)}</h1>
<p>This address is for programs that speak the Model Context Protocol, such as Claude, Cursor or VS Code. Give it to one of them:</p>
${block(url)}
<h2>Claude Code</h2>
${block(`claude mcp add --transport http ${name} ${word}`)}
<h2>Cursor, and others with a file of servers</h2>
${block(config)}
<h2>Any client</h2>
<p>What it needs is printed by one of</p>
${block(['claude-desktop', 'cursor', 'vscode', 'inspector'].map(client => `npx -y mcp-host connect ${client} ${word}`).join('\n'))}
<h2>Try it</h2>
${(server === undefined ? guarded : open).join('\n')}
</main></body></html>
`
}

export function createVisitPage(server: { readonly name: string }, route: McpRoute) {
  return (ctx: HostContext): void => {
    const url = plainUrl(route.url(ctx.state.params))
    ctx.set({ ...HEADERS })
    ctx.body = pageText({ url, server: route.authorize === undefined ? server.name : undefined })
  }
}
