// Shows the app of a tool in a sandboxed frame. The operator confirms its calls and links.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type AppPage, PATHS, type SurfaceItem, type TryRequest } from '../../api.ts'
import { AppError, connectApp, isForApps } from '../data/app-bridge.ts'
import { callTool, canDestroy } from '../data/call-tool.ts'
import { errorText, post } from '../data/request.ts'
import { isObject, type JsonObject, objectIn } from '../data/schema.ts'
import { me } from '../data/session.ts'
import { visibleText } from '../data/text.ts'
import { Confirm } from './dialogs.tsx'
import { Code, Text } from './text.tsx'

/** Pixels. */
const MIN_HEIGHT = 80
const MAX_HEIGHT = 800
const MAX_CALLS = 4
/** Number of declined requests after which the app cannot request another confirmation. */
const MAX_DECLINED = 3
const MAX_URL = 2_000

interface Confirmation {
  readonly title: string
  readonly action: string
  readonly isDanger: boolean
  readonly text: string
  readonly run: () => void
  /** Declines the request, unless `run` was called. */
  readonly close: () => void
}

interface AppFrameProps {
  readonly uri: string
  /** The call that opens the app. */
  readonly request: TryRequest
  readonly result: JsonObject
  /** The tools of the same path. */
  readonly tools: readonly SurfaceItem[]
}

function linkIn({ url }: JsonObject): string {
  const link = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  const isSafe =
    link?.protocol === 'https:' && link.username === '' && link.password === '' && link.href.length <= MAX_URL
  if (!isSafe) throw new AppError(-32000, 'Only https URLs can be opened.')
  return link.href
}

export function AppFrame({ uri, request, result, tools }: AppFrameProps) {
  const { path, tool, token } = request
  const caller = { path, ...(token !== undefined && { token }) }
  const frame = useRef<HTMLIFrameElement>(null)
  const [page, setPage] = useState<AppPage>()
  const [ended, setEnded] = useState<string>()
  const [height, setHeight] = useState(MIN_HEIGHT)
  const [confirmation, setConfirmation] = useState<Confirmation>()

  useEffect(() => {
    post<AppPage>(PATHS.app, { ...caller, uri }).then(setPage, error => setEnded(errorText(error)))
  }, [])

  // A layout effect runs before the frame can send its first message.
  useLayoutEffect(() => {
    if (!page || ended !== undefined || !frame.current) return undefined
    const running = new AbortController()
    // The operator has already called this tool.
    const confirmed = new Set([tool])
    let isOpen = false
    let declined = 0
    let calls = 0

    function confirm(shown: Omit<Confirmation, 'run' | 'close'>, run = () => {}): Promise<void> {
      if (isOpen) throw new AppError(-32000, 'Another confirmation is open.')
      if (declined >= MAX_DECLINED) throw new AppError(-32000, 'The operator declined too often.')
      isOpen = true
      return new Promise<void>((resolve, reject) => {
        let isDone = false
        setConfirmation({
          ...shown,
          run() {
            isDone = true
            run()
            resolve()
          },
          close() {
            isOpen = false
            setConfirmation(undefined)
            if (isDone) return
            declined++
            reject(new AppError(-32000, 'The operator declined.'))
          },
        })
      })
    }

    async function call({ name, arguments: given = {} }: JsonObject): Promise<object> {
      const item = tools.find(one => one.name === name)
      if (!item || !isForApps(item.shown)) throw new AppError(-32602, 'Apps cannot call this tool.')
      if (!isObject(given)) throw new AppError(-32602, 'The arguments must be an object.')
      const isDanger = canDestroy(item.shown)
      if (isDanger || !confirmed.has(item.name)) {
        const title = `Let the app call ${visibleText(item.name, 60)}?`
        await confirm({ title, action: 'Call', isDanger, text: JSON.stringify(given) })
        confirmed.add(item.name)
      }
      if (calls >= MAX_CALLS) throw new AppError(-32000, 'The app has too many calls in progress.')
      calls++
      try {
        const request = { ...caller, tool: item.name, arguments: given, ...(isDanger && { confirm: true as const }) }
        const { response } = await callTool(request, running)
        if ('error' in response) {
          const { code, message } = objectIn(response, 'error')
          throw new AppError(typeof code === 'number' ? code : -32000, String(message))
        }
        const value = objectIn(response, 'result')
        if (value['resultType'] === 'input_required') throw new AppError(-32000, 'The tool requires input.')
        return value
      } finally {
        calls--
      }
    }

    const disconnect = connectApp(frame.current, {
      version: me.value?.version ?? '',
      maxHeight: MAX_HEIGHT,
      arguments: request.arguments,
      result,
      requests: {
        'tools/call': call,
        async 'ui/open-link'(params) {
          const url = linkIn(params)
          const title = 'Open this link of the app?'
          await confirm({ title, action: 'Open', isDanger: false, text: url }, () => {
            open(url, '_blank', 'noopener,noreferrer')
          })
          return {}
        },
      },
      onHeight: wanted => setHeight(Math.min(Math.max(Math.ceil(wanted), MIN_HEIGHT), MAX_HEIGHT)),
      onStop: setEnded,
    })
    return () => {
      disconnect()
      running.abort()
    }
  }, [page, ended])

  if (ended !== undefined)
    return (
      <p class="note warn" role="status">
        {ended}
      </p>
    )
  if (!page) return <p>Loading the app</p>
  const { allowed, refused } = page
  return (
    <section class="stack" aria-label="App">
      <div class="tools">
        <h3>App</h3>
        <button type="button" onClick={() => setEnded('The app was closed.')}>
          Close app
        </button>
        <span class="small muted wrap">
          Network: <Text value={allowed.length === 0 ? 'none' : allowed.join(', ')} />
          {refused.length > 0 && <Text value={`, refused: ${refused.join(', ')}`} />}
        </span>
      </div>
      <iframe
        ref={frame}
        class="app"
        title={`App of ${visibleText(tool, 60)}`}
        src={page.path}
        sandbox="allow-scripts"
        height={height}
      />
      {confirmation && (
        <Confirm
          title={confirmation.title}
          action={confirmation.action}
          isDanger={confirmation.isDanger}
          run={async () => confirmation.run()}
          onClose={confirmation.close}
        >
          <p class="wrap">
            <Code value={confirmation.text} most={confirmation.text.length} />
          </p>
        </Confirm>
      )}
    </section>
  )
}
