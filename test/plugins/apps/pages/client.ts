// A client in a page, for tests: the official client and bridge call a tool and show its app, in a sandbox of another origin.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { AppBridge, getToolUiResourceUri, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'

interface Wanted {
  url: string
  sandbox: string
  tool: string
  args: Record<string, unknown>
}

/** What happened, for the test to read. */
const seen = { ready: false, initialized: 0, app: '', calls: [] as object[], sizes: 0, error: '' }
Object.assign(window, { seen, show })

async function show({ url, sandbox, tool, args }: Wanted): Promise<void> {
  const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
  const client = new Client({ name: 'page', version: '1.0.0' }, { capabilities: { extensions } })
  const noting: typeof fetch = (input, init) => {
    const { method, params } = JSON.parse(typeof init?.body === 'string' ? init.body : '{}')
    if (method === 'tools/call') seen.calls.push(params.arguments)
    return fetch(input, init)
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: noting }))
  const { tools } = await client.listTools()
  const found = tools.find(({ name }) => name === tool)
  const uri = found && getToolUiResourceUri(found)
  if (!uri) throw new Error(`${tool} has no app`)
  const [contents] = (await client.readResource({ uri })).contents
  const { csp, permissions } = (contents?._meta?.['ui'] ?? {}) as { csp?: object; permissions?: object }
  const html = contents && 'text' in contents ? String(contents.text) : ''

  const frame = document.createElement('iframe')
  frame.src = `${sandbox}?csp=${encodeURIComponent(JSON.stringify(csp ?? {}))}`
  frame.setAttribute('sandbox', 'allow-scripts allow-same-origin')
  frame.style.cssText = 'width: 700px; height: 500px; border: 0'
  document.body.append(frame)
  const inner = frame.contentWindow
  if (!inner) throw new Error('no frame')

  const bridge = new AppBridge(
    client,
    { name: 'page', version: '1.0.0' },
    { serverTools: {} },
    {
      hostContext: { theme: 'dark' },
    },
  )
  bridge.addEventListener('sandboxready', () => void bridge.sendSandboxResourceReady({ html, csp, permissions }))
  bridge.addEventListener('sizechange', () => void seen.sizes++)
  bridge.addEventListener('initialized', async () => {
    seen.initialized++
    seen.app = bridge.getAppVersion()?.name ?? ''
    await bridge.sendToolInput({ arguments: args })
    await bridge.sendToolResult((await client.callTool({ name: tool, arguments: args })) as never)
    seen.ready = true
  })
  await bridge.connect(new PostMessageTransport(inner, inner))
}
