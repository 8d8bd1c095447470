// Connects an MCP App (SEP-1865) to the console: JSON-RPC over postMessage, with limits.
import { isObject, type JsonObject, objectIn } from './schema.ts'

const PROTOCOL = '2026-01-26'
/** Maximum messages per window: an app can report its size with each frame of an animation. */
const MAX_MESSAGES = 600
/** Milliseconds. */
const WINDOW = 10_000
/** Characters of the JSON of a message. */
const MAX_MESSAGE_LENGTH = 128 * 1_024

/** An error response to a request of the app. */
export class AppError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

interface AppHost {
  readonly version: string
  readonly maxHeight: number
  readonly arguments: JsonObject
  /** The result of the call that opened the app. */
  readonly result: JsonObject
  /** Requests of the app, by method. A rejection is sent as an error. */
  readonly requests: Readonly<Record<string, (params: JsonObject) => Promise<object>>>
  readonly onHeight: (height: number) => void
  /** Called after an app that exceeded a limit was disconnected. */
  readonly onStop: (reason: string) => void
}

/** Encodes a message as JSON, because apps can post any object. Empty if that fails. */
function textOf(data: unknown): string {
  try {
    return JSON.stringify(data) ?? ''
  } catch {
    return ''
  }
}

/** Connects the app in this frame. Returns a function that disconnects it. */
export function connectApp(frame: HTMLIFrameElement, host: AppHost): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const theme = () => (dark.matches ? 'dark' : 'light')
  let windowStart = 0
  let messages = 0
  let isInitialized = false

  // An opaque origin cannot be a target: only `*` matches it.
  const post = (message: object) => frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, '*')
  const notify = (method: string, params: object) => post({ method: `ui/notifications/${method}`, params })

  const requests: AppHost['requests'] = {
    ping: async () => ({}),
    'ui/initialize': async () => ({
      protocolVersion: PROTOCOL,
      hostInfo: { name: 'mcp-host-console', version: host.version },
      hostCapabilities: { serverTools: {}, openLinks: {} },
      hostContext: {
        theme: theme(),
        displayMode: 'inline',
        availableDisplayModes: ['inline'],
        containerDimensions: { maxHeight: host.maxHeight },
        platform: 'web',
      },
    }),
    'ui/request-display-mode': async () => ({ mode: 'inline' }),
    ...host.requests,
  }

  async function respond(id: string | number, method: string, params: JsonObject) {
    try {
      const request = Object.hasOwn(requests, method) ? requests[method] : undefined
      if (!request) throw new AppError(-32601, 'Method not found')
      post({ id, result: await request(params) })
    } catch (error) {
      const { code, message } = error instanceof AppError ? error : new AppError(-32000, 'The request failed.')
      post({ id, error: { code, message } })
    }
  }

  function receive(event: MessageEvent<unknown>) {
    if (event.source !== frame.contentWindow || event.origin !== 'null') return
    const now = performance.now()
    if (now - windowStart >= WINDOW) [windowStart, messages] = [now, 0]
    const text = ++messages > MAX_MESSAGES ? undefined : textOf(event.data)
    if (text === undefined || text.length > MAX_MESSAGE_LENGTH) {
      disconnect()
      return host.onStop('The app was stopped: it sent too many or too large messages.')
    }
    const message: unknown = text === '' ? undefined : JSON.parse(text)
    if (!isObject(message) || message['jsonrpc'] !== '2.0') return
    const { id, method, params } = message
    if (typeof method !== 'string') return
    const given = isObject(params) ? params : {}
    if (typeof id === 'string' || typeof id === 'number') return void respond(id, method, given)
    const height = given['height']
    if (method === 'ui/notifications/size-changed' && typeof height === 'number') host.onHeight(height)
    if (method !== 'ui/notifications/initialized' || isInitialized) return
    isInitialized = true
    notify('tool-input', { arguments: host.arguments })
    notify('tool-result', host.result)
  }

  const themeChanged = () => isInitialized && notify('host-context-changed', { theme: theme() })
  function disconnect() {
    removeEventListener('message', receive)
    dark.removeEventListener('change', themeChanged)
  }
  addEventListener('message', receive)
  dark.addEventListener('change', themeChanged)
  return disconnect
}

/** True if `_meta.ui.visibility` of the tool allows calls of apps. */
export function isForApps(shown: JsonObject): boolean {
  const visibility = objectIn(shown['_meta'], 'ui')['visibility']
  return visibility === undefined || (Array.isArray(visibility) && visibility.includes('app'))
}

/** The URI of the app of a tool. */
export function appOf(shown: JsonObject): string | undefined {
  const uri = objectIn(shown['_meta'], 'ui')['resourceUri']
  return typeof uri === 'string' && uri.startsWith('ui://') ? uri : undefined
}
