// The page's side of the talk with the client that shows it: JSON-RPC over `postMessage` (SEP-1865, "Communication
// Protocol"). As much of it as this page needs; @modelcontextprotocol/ext-apps has all of it.

export interface CallToolResult {
  content?: Array<{ type: string; text?: string }>
  structuredContent?: unknown
  isError?: boolean
}

/** What the client tells of the call whose result the page is to show. */
export interface Told {
  input(args: Record<string, unknown>): void
  result(result: CallToolResult): void
  cancelled(): void
  theme(theme: 'light' | 'dark'): void
}

interface Message {
  jsonrpc: '2.0'
  id?: number | string
  method?: string
  params?: Record<string, unknown>
  result?: unknown
  error?: { message?: string }
}

interface Initialized {
  hostCapabilities?: { serverTools?: object }
  hostContext?: { theme?: 'light' | 'dark' }
}

interface Host {
  /** Whether the client lets the page call tools. */
  callsTools(): boolean
  callTool(name: string, args: Record<string, unknown>): Promise<CallToolResult>
}

const VERSION = '2026-01-26'

export function connect(appInfo: { name: string; version: string }, told: Told): Host {
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  let last = 0
  let initialized: Initialized = {}

  const post = (message: Omit<Message, 'jsonrpc'>) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*')

  function request<Result>(method: string, params: Record<string, unknown>): Promise<Result> {
    const id = ++last
    return new Promise<Result>((resolve, reject) => {
      waiting.set(id, { resolve: result => resolve(result as Result), reject })
      post({ id, method, params })
    })
  }

  function settle({ id, result, error }: Message): void {
    const asked = waiting.get(id as number)
    waiting.delete(id as number)
    if (error) asked?.reject(new Error(error.message ?? 'refused'))
    else asked?.resolve(result)
  }

  function hear(method: string, params: Record<string, unknown>): void {
    if (method === 'ui/notifications/tool-input') told.input((params['arguments'] ?? {}) as Record<string, unknown>)
    if (method === 'ui/notifications/tool-result') told.result(params)
    if (method === 'ui/notifications/tool-cancelled') told.cancelled()
    const { theme } = params as Initialized['hostContext'] & object
    if (method === 'ui/notifications/host-context-changed' && theme) told.theme(theme)
  }

  window.addEventListener('message', ({ source, data }: MessageEvent<Message>) => {
    // Other windows can send messages, too.
    if (source !== window.parent || data?.jsonrpc !== '2.0') return
    const { id, method, params = {} } = data
    if (method === undefined) return settle(data)
    if (id === undefined) return hear(method, params)
    if (method === 'ping' || method === 'ui/resource-teardown') return post({ id, result: {} })
    window.parent.postMessage({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }, '*')
  })

  async function begin() {
    const params = { appInfo, appCapabilities: {}, protocolVersion: VERSION }
    initialized = await request<Initialized>('ui/initialize', params)
    if (initialized.hostContext?.theme) told.theme(initialized.hostContext.theme)
    post({ method: 'ui/notifications/initialized' })
    // Clients give the page the height that it needs.
    new ResizeObserver(() => {
      const { width, height } = document.documentElement.getBoundingClientRect()
      post({ method: 'ui/notifications/size-changed', params: { width: Math.ceil(width), height: Math.ceil(height) } })
    }).observe(document.documentElement)
  }
  void begin()

  return {
    callsTools: () => initialized.hostCapabilities?.serverTools !== undefined,
    callTool: (name, args) => request('tools/call', { name, arguments: args }),
  }
}
