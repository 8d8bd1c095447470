// Screen 5: call a tool over its public endpoint, with a form from its JSON Schema.
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { PATHS, type Reply, type Surface, type SurfaceItem, type TryRequest, type TryResult } from '../../api.ts'
import { appOf } from '../data/app-bridge.ts'
import { callTool, canDestroy } from '../data/call-tool.ts'
import { useQuery } from '../data/query.ts'
import { errorText } from '../data/request.ts'
import { useResource } from '../data/resource.ts'
import { initialValue, isObject, type JsonObject, objectIn } from '../data/schema.ts'
import { json, milliseconds, visibleText } from '../data/text.ts'
import { AppFrame } from '../parts/app-frame.tsx'
import { Badge } from '../parts/badge.tsx'
import { CodeBlock, Commands } from '../parts/copy.tsx'
import { Confirm } from '../parts/dialogs.tsx'
import { Choice } from '../parts/list.tsx'
import { JsonField, SchemaForm } from '../parts/schema-form.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { Code, Text } from '../parts/text.tsx'

function Content({ part }: { readonly part: unknown }) {
  if (isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string') {
    return <CodeBlock text={part['text']} what="the text" />
  }
  return <CodeBlock text={json(part)} what="the content" />
}

interface ResultProps {
  readonly result: TryResult
  readonly notifications: readonly JsonObject[]
}

function Result({ result: { status, ms, response, commands }, notifications }: ResultProps) {
  const result = objectIn(response, 'result')
  const isError = 'error' in response || result['isError'] === true || status >= 400
  const content: readonly unknown[] = Array.isArray(result['content']) ? result['content'] : []
  return (
    <section class="card stack" aria-label="Result">
      <div class="badges">
        <Badge tone={isError ? 'fault' : 'good'}>{isError ? 'Error' : 'OK'}</Badge>
        <Badge>HTTP {status}</Badge>
        <Badge>{milliseconds(ms)}</Badge>
      </div>
      {'error' in response && (
        <p class="note fault" role="alert">
          <Text value={String(objectIn(response, 'error')['message'] ?? 'Error')} lines />
        </p>
      )}
      {content.map((part, index) => (
        <Content key={index} part={part} />
      ))}
      {result['structuredContent'] !== undefined && (
        <div class="stack">
          <h3>Structured content</h3>
          <CodeBlock text={json(result['structuredContent'])} what="the structured content" />
        </div>
      )}
      {notifications.length > 0 && (
        <details>
          <summary>Progress and log messages ({notifications.length})</summary>
          <CodeBlock text={notifications.map(one => JSON.stringify(one)).join('\n')} what="the messages" />
        </details>
      )}
      <details>
        <summary>JSON-RPC response</summary>
        <CodeBlock text={json(response)} what="the response" />
      </details>
      <Commands list={commands} />
    </section>
  )
}

/** The last progress notification. */
function Progress({ notifications }: Pick<ResultProps, 'notifications'>) {
  const { progress, total, message } = objectIn(
    notifications.findLast(({ method }) => method === 'notifications/progress'),
    'params',
  )
  return (
    <p class="tools">
      <progress
        aria-label="Progress"
        max={typeof total === 'number' ? total : undefined}
        value={typeof total === 'number' && typeof progress === 'number' ? progress : undefined}
      />
      <Text value={typeof message === 'string' ? message : 'Running'} most={200} />
    </p>
  )
}

/** A page of another server, which the operator opens. */
function OpenLink({ url }: { readonly url: string }) {
  const isWeb = /^https?:\/\//i.test(url)
  return (
    <div class="stack">
      <Code value={url} most={2_000} />
      {isWeb ? (
        <div>
          <a class="button" href={url} target="_blank" rel="noopener noreferrer">
            Open in a new tab
          </a>
        </div>
      ) : (
        <p class="note warn">The console opens only http and https URLs.</p>
      )}
    </div>
  )
}

interface InputProps {
  readonly requests: JsonObject
  readonly onSubmit: (responses: JsonObject) => void
}

/** The input that the tool requests from the operator. */
function InputForm({ requests, onSubmit }: InputProps) {
  const entries = Object.entries(requests)
  const paramsOf = (one: unknown) => objectIn(one, 'params')
  const isUrl = (one: unknown) => paramsOf(one)['mode'] === 'url'
  const schemaOf = (one: unknown) => objectIn(paramsOf(one), 'requestedSchema')
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => title.current?.focus(), [])
  const [values, setValues] = useState<Readonly<Record<string, JsonObject>>>(() =>
    Object.fromEntries(
      entries.map(([key, one]) => {
        const value = initialValue(schemaOf(one), schemaOf(one))
        return [key, isObject(value) ? value : {}]
      }),
    ),
  )
  const respond = (action: 'accept' | 'decline') =>
    onSubmit(
      Object.fromEntries(
        entries.map(([key, one]) => [
          key,
          action === 'accept' && !isUrl(one) ? { action, content: values[key] } : { action },
        ]),
      ),
    )
  const canRespond = entries.every(([, one]) => isObject(one) && one['method'] === 'elicitation/create')
  if (!canRespond) return <p class="note warn">The tool sent a request that the console cannot respond to.</p>
  return (
    <form
      class="card stack"
      onSubmit={event => {
        event.preventDefault()
        respond('accept')
      }}
    >
      <h2 ref={title} tabIndex={-1}>
        The tool requests input
      </h2>
      {entries.map(([key, one]) => (
        <div key={key} class="stack">
          <p class="wrap">
            <Text value={String(paramsOf(one)['message'] ?? '')} lines />
          </p>
          {isUrl(one) ? (
            <OpenLink url={String(paramsOf(one)['url'] ?? '')} />
          ) : (
            <SchemaForm
              schema={schemaOf(one)}
              value={values[key] ?? {}}
              onChange={value => setValues({ ...values, [key]: value })}
            />
          )}
        </div>
      ))}
      <div class="tools">
        <button type="submit" class="main">
          {entries.every(([, one]) => isUrl(one)) ? 'Continue' : 'Send'}
        </button>
        <button type="button" onClick={() => respond('decline')}>
          Decline
        </button>
      </div>
    </form>
  )
}

interface State {
  /** While the call runs. */
  readonly running?: AbortController
  readonly notifications: readonly JsonObject[]
  readonly result?: TryResult
  /** The request that `result` belongs to. */
  readonly request?: TryRequest
  readonly error?: string
}

type Round = Pick<TryRequest, 'inputResponses' | 'requestState'>

interface TryToolProps {
  readonly item: SurfaceItem
  /** The tools of the same path. */
  readonly tools: readonly SurfaceItem[]
}

function TryTool({ item, tools }: TryToolProps) {
  const schema = objectIn(item.shown, 'inputSchema')
  const start = initialValue(schema, schema)
  const [values, setValues] = useState<JsonObject>(isObject(start) ? start : {})
  const [isRaw, setRaw] = useState(false)
  const [token, setToken] = useState('')
  const [isAsking, setAsking] = useState(false)
  const [state, setState] = useState<State>({ notifications: [] })
  const id = useId()
  const isDestructive = canDestroy(item.shown)
  const app = appOf(item.shown)

  async function call(round: Round = {}) {
    const running = new AbortController()
    const notifications: JsonObject[] = []
    setState({ running, notifications })
    const request: TryRequest = {
      path: item.path,
      tool: item.name,
      arguments: values,
      ...(token !== '' && { token }),
      ...(isDestructive && { confirm: true }),
      ...round,
    }
    try {
      const result = await callTool(request, {
        signal: running.signal,
        onNotification(line) {
          notifications.push(line)
          setState({ running, notifications: [...notifications] })
        },
      })
      setState({ notifications, result, request })
    } catch (error) {
      setState({ notifications, error: running.signal.aborted ? 'Cancelled.' : errorText(error) })
    }
  }

  const result = objectIn(state.result?.response, 'result')
  const requests = objectIn(result, 'inputRequests')
  const requestState = result['requestState']
  const isComplete = result['resultType'] !== 'input_required'
  return (
    <div class="stack">
      <form
        class="card stack"
        onSubmit={event => {
          event.preventDefault()
          if (isDestructive) setAsking(true)
          else void call()
        }}
      >
        <h2>
          <Text value={item.title ?? item.name} /> {isDestructive && <Badge tone="warn">can be destructive</Badge>}
        </h2>
        {item.description !== undefined && (
          <p class="muted wrap">
            <Text value={item.description} lines />
          </p>
        )}
        {isRaw ? (
          <div class="field">
            <label for={`${id}-raw`}>Arguments as JSON</label>
            <JsonField
              id={`${id}-raw`}
              value={values}
              isRequired={false}
              describedBy={undefined}
              onChange={value => setValues(isObject(value) ? value : {})}
            />
          </div>
        ) : (
          <SchemaForm schema={schema} value={values} onChange={setValues} />
        )}
        <details>
          <summary>Caller</summary>
          <div class="field">
            <label for={`${id}-token`}>Access token</label>
            <input
              id={`${id}-token`}
              type="password"
              autocomplete="off"
              value={token}
              aria-describedby={`${id}-help`}
              onInput={event => setToken(event.currentTarget.value.trim())}
            />
            <p class="small muted" id={`${id}-help`}>
              Without a token the call is anonymous. <code>mcp-host token URL</code> prints the token of your login. The
              console does not store it.
            </p>
          </div>
        </details>
        <div class="tools">
          <button type="submit" class="main" disabled={state.running !== undefined}>
            Call
          </button>
          {state.running && (
            <button type="button" onClick={() => state.running?.abort()}>
              Cancel
            </button>
          )}
          <button type="button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
            Edit as JSON
          </button>
        </div>
      </form>
      {isAsking && (
        <Confirm
          title={`Call ${visibleText(item.name, 60)}?`}
          action="Call"
          isDanger
          run={async () => void call()}
          onClose={() => setAsking(false)}
        >
          This tool can make destructive changes.
        </Confirm>
      )}
      <div role="status" class="stack">
        {state.running && <Progress notifications={state.notifications} />}
        {state.error !== undefined && <p class="note fault">{state.error}</p>}
        {state.result && isComplete && <Result result={state.result} notifications={state.notifications} />}
      </div>
      {app !== undefined && state.request && isComplete && isObject(state.result?.response['result']) && (
        <AppFrame uri={app} request={state.request} result={result} tools={tools} />
      )}
      {!isComplete && (
        <InputForm
          requests={requests}
          onSubmit={inputResponses =>
            void call({ inputResponses, ...(typeof requestState === 'string' && { requestState }) })
          }
        />
      )}
    </div>
  )
}

export default function TryScreen() {
  const surface = useResource<Reply<Surface>>(PATHS.surface)
  const [query, change] = useQuery()
  return (
    <Loaded from={surface}>
      {data => {
        const tools = data.items.filter(({ kind }) => kind === 'tools')
        const item =
          tools.find(({ path, name }) => path === query.get('path') && name === query.get('tool')) ?? tools[0]
        if (!item) return <Empty title="No tools" />
        return (
          <>
            <div class="tools">
              <Choice
                label="Tool"
                value={String(tools.indexOf(item))}
                options={tools.map(({ path, name }, at) => [String(at), `${name} (${path})`])}
                onChange={value => {
                  const chosen = tools[Number(value)]
                  if (chosen) change({ path: chosen.path, tool: chosen.name })
                }}
              />
            </div>
            <TryTool
              key={`${item.path} ${item.name}`}
              item={item}
              tools={tools.filter(({ path }) => path === item.path)}
            />
          </>
        )
      }}
    </Loaded>
  )
}
