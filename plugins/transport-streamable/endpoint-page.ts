// The page for a browser at an endpoint: how to connect, and the tools of an open route. For a protected route it shows only the URL.
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import type { Transport } from '../../core/transport.ts'
import { html, type Markup, safeHref, sendPage, shown, writePage } from '../families/pages/index.ts'

/** Copies text. Runs only where the clipboard is available: on https and loopback URLs. */
const COPY = `
const status = document.querySelector('[role=status]')
if (navigator.clipboard) for (const button of document.querySelectorAll('button.copy')) {
  button.hidden = false
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent)
      status.textContent = 'Copied.'
      button.firstChild.data = 'Copied'
    } catch {
      status.textContent = 'Copying failed.'
    }
    setTimeout(() => { status.textContent = ''; button.firstChild.data = 'Copy' }, 2000)
  })
}
`

/** Returns the URL without shell metacharacters, since sh, cmd and PowerShell quote differently. IPv6 brackets stay. */
const escapeForShell = (url: string): string =>
  new URL(url).href.replace(/[^\w%:/.~@+=[\]-]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

const copyBlock = (text: string, what: string) =>
  html`<div class="block"><pre><code>${text}</code></pre><button type="button" class="copy" hidden>Copy<span class="hidden"> ${what}</span></button></div>`

const toServerName = (text: string) => text.replace(/[^\w-]+/g, '-').replace(/^-+|-+$/g, '') || 'mcp-server'

interface PageContent {
  readonly url: string
  /** Undefined for a protected route. */
  readonly server?: ServerDescription
}

interface ServerDescription {
  readonly name: string
  readonly title?: string | undefined
  readonly version: string
  readonly description?: string | undefined
  readonly websiteUrl?: string | undefined
  readonly tools?: readonly Tool[]
}

interface Tool {
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
}

const MAX_TOOLS = 100
/** Maximum open entries; longer lists are folded. */
const MAX_OPEN = 10
const MAX_DESCRIPTION = 200

function writeTools(tools: readonly Tool[]): Markup {
  const omitted = tools.length - MAX_TOOLS
  return html`<details${tools.length > MAX_OPEN ? undefined : html` open`}><summary>${tools.length === 1 ? '1 tool' : `${tools.length} tools`}</summary>
<ul class="list">${tools.slice(0, MAX_TOOLS).map(
    ({ name, title, description }) => html`
<li><code>${shown(name, 128)}</code>${title === undefined ? undefined : html` ${shown(title)}`}${
      description === undefined
        ? undefined
        : html`<br><span class="small">${shown(description, MAX_DESCRIPTION)}</span>`
    }</li>`,
  )}${omitted > 0 ? html`<li>And ${String(omitted)} more.</li>` : undefined}
</ul></details>`
}

function installLinks(name: string, url: string): Markup {
  const code = encodeURIComponent(JSON.stringify({ name, type: 'http', url }))
  const config = encodeURIComponent(Buffer.from(JSON.stringify({ url })).toString('base64'))
  return html`<p class="choice"><a class="button main" href="vscode:mcp/install?${code}">Install in VS Code</a>
<a class="button main" href="cursor://anysphere.cursor-deeplink/mcp/install?name=${name}&amp;config=${config}">Install in Cursor</a></p>`
}

function writeDescription({ version, description, websiteUrl }: ServerDescription): Markup {
  const href = websiteUrl === undefined ? undefined : safeHref(websiteUrl)
  return html`${description === undefined ? undefined : html`<p>${shown(description, 500)}</p>`}
<p class="small">Version ${shown(version)}${href && html`, <a href="${href}" rel="noreferrer">${shown(href, 100)}</a>`}</p>`
}

function renderPage({ url, server }: PageContent) {
  const name = toServerName(server?.name ?? 'mcp-server')
  const shellUrl = url.includes('[') ? `"${url}"` : url
  const title = server ? shown(server.title ?? server.name) : 'MCP server'
  const config = JSON.stringify({ mcpServers: { [name]: { url } } }, undefined, 2)
  const list = `npx -y mcp-host list ${shellUrl}`
  return writePage({
    title: server ? `${title} – MCP server` : title,
    header: html`<p>MCP server</p>`,
    isWide: true,
    script: COPY,
    content: html`<h1>${title}</h1>
${server && writeDescription(server)}
<p>This URL is for clients of the Model Context Protocol, such as Claude, Cursor and VS Code.</p>
${copyBlock(url, 'the URL')}
${installLinks(name, url)}
${server?.tools && writeTools(server.tools)}
<h2>Claude Code</h2>
${copyBlock(`claude mcp add --transport http ${name} ${shellUrl}`, 'the command for Claude Code')}
<h2>Clients with an mcpServers file</h2>
${copyBlock(config, 'the configuration')}
<h2>Other clients</h2>
<p>Print the configuration for claude-desktop, codex, gemini-cli, zed and others:</p>
${copyBlock(`npx -y mcp-host connect claude-desktop ${shellUrl}`, 'the command for other clients')}
<h2>Terminal</h2>
${server ? undefined : html`<p>This server requires a login. Clients open the login page automatically.</p>`}
${copyBlock(server ? list : `npx -y mcp-host login ${shellUrl}\n${list}`, 'the commands for a terminal')}
<p role="status" class="hidden"></p>`,
  })
}

/** Lists the tools as for an anonymous client. */
async function describeServer(host: Transport, route: McpRoute, ctx: HostContext): Promise<ServerDescription> {
  const { server } = host.config
  const abort = new AbortController()
  const { headers } = ctx.req
  const facts = { route, params: ctx.state.params, user: undefined, headers, ip: ctx.ip, signal: () => abort.signal }
  try {
    const { view } = await host.makeOffer(facts)
    const tools = [...view.tools.values()].filter(tool => view.isListed(tool))
    return {
      ...view.serverInfo,
      tools: tools.map(({ key, definition: { title, description } }) => ({ name: key, title, description })),
    }
  } catch (err) {
    host.log.debug({ err }, 'cannot list the tools on the page of an endpoint')
    return server
  } finally {
    abort.abort()
  }
}

export function createEndpointPage(host: Transport, route: McpRoute) {
  return async (ctx: HostContext): Promise<void> => {
    const url = escapeForShell(route.url(ctx.state.params))
    const isOpen = route.authorize === undefined && ctx.status !== 401
    const content = isOpen ? { url, server: await describeServer(host, route, ctx) } : { url }
    sendPage(ctx, renderPage(content), ctx.status)
  }
}
