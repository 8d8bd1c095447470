// Connects the page to the client that displays it: JSON-RPC over `postMessage` (SEP-1865, "Communication Protocol").
// Implements only what this page needs; @modelcontextprotocol/ext-apps is complete.

export interface CallToolResult {
  content?: Array<{ type: string; text?: string }>
  structuredContent?: unknown
  isError?: boolean
}

/** Notifications of the client about the tool call. */
export interface Handlers {
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

export function connect(appInfo: { name: string; version: string }, handlers: Handlers): Host {
  const pending = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  let lastId = 0
  let initialized: Initialized = {}

  const post = (message: Omit<Message, 'jsonrpc'>) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*')

  function request<Result>(method: string, params: Record<string, unknown>): Promise<Result> {
    const id = ++lastId
    return new Promise<Result>((resolve, reject) => {
      pending.set(id, { resolve: result => resolve(result as Result), reject })
      post({ id, method, params })
    })
  }

  function settle({ id, result, error }: Message): void {
    const request = pending.get(id as number)
    pending.delete(id as number)
    if (error) request?.reject(new Error(error.message ?? 'The request failed.'))
    else request?.resolve(result)
  }

  function handleNotification(method: string, params: Record<string, unknown>): void {
    if (method === 'ui/notifications/tool-input') handlers.input((params['arguments'] ?? {}) as Record<string, unknown>)
    if (method === 'ui/notifications/tool-result') handlers.result(params)
    if (method === 'ui/notifications/tool-cancelled') handlers.cancelled()
    const { theme } = params as Initialized['hostContext'] & object
    if (method === 'ui/notifications/host-context-changed' && theme) handlers.theme(theme)
  }

  window.addEventListener('message', ({ source, data }: MessageEvent<Message>) => {
    // Other windows can also send messages.
    if (source !== window.parent || data?.jsonrpc !== '2.0') return
    const { id, method, params = {} } = data
    if (method === undefined) return settle(data)
    if (id === undefined) return handleNotification(method, params)
    if (method === 'ping' || method === 'ui/resource-teardown') return post({ id, result: {} })
    window.parent.postMessage({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }, '*')
  })

  async function initialize() {
    const params = { appInfo, appCapabilities: {}, protocolVersion: VERSION }
    initialized = await request<Initialized>('ui/initialize', params)
    if (initialized.hostContext?.theme) handlers.theme(initialized.hostContext.theme)
    post({ method: 'ui/notifications/initialized' })
    // Clients resize the page to the reported size.
    new ResizeObserver(() => {
      const { width, height } = document.documentElement.getBoundingClientRect()
      post({ method: 'ui/notifications/size-changed', params: { width: Math.ceil(width), height: Math.ceil(height) } })
    }).observe(document.documentElement)
  }
  void initialize()

  return {
    callsTools: () => initialized.hostCapabilities?.serverTools !== undefined,
    callTool: (name, args) => request('tools/call', { name, arguments: args }),
  }
}
