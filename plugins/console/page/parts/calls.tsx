// Parts that several screens of calls share: outcome, item, client, and the details of one call.
import { Link } from 'wouter-preact'
import { type CallRow, type ItemKind, shellWord } from '../../api.ts'
import { urlOf } from '../data/query.ts'
import { me } from '../data/session.ts'
import { bytes, fullTime, milliseconds } from '../data/text.ts'
import { Badge, type Tone } from './badge.tsx'
import { Timeline } from './charts.tsx'
import { Commands, Copy } from './copy.tsx'
import { Code, Facts, Text } from './text.tsx'

const OUTCOMES: Readonly<Record<CallRow['outcome'], readonly [Tone, string]>> = {
  ok: ['good', 'OK'],
  input_required: ['info', 'Input required'],
  tool_error: ['warn', 'Tool error'],
  error: ['fault', 'Error'],
  refused: ['fault', 'Denied'],
  cancelled: ['plain', 'Cancelled'],
}

export const OUTCOME_NAMES = Object.entries(OUTCOMES).map(([name, [, label]]) => [name, label] as const)

export const OutcomeBadge = ({ outcome }: { readonly outcome: CallRow['outcome'] }) => {
  const [tone, label] = OUTCOMES[outcome]
  return <Badge tone={tone}>{label}</Badge>
}

export const clientText = ({ client }: Pick<CallRow, 'client'>): string | undefined =>
  client && `${client.name} ${client.version}`

export const itemText = ({ method, name }: Pick<CallRow, 'method' | 'name'>): string =>
  [method ?? 'HTTP request', name].filter(Boolean).join(' ')

const OPTIONS: Readonly<Record<ItemKind, string>> = { tools: '--tool', resources: '--resource', prompts: '--prompt' }

export const RouteLink = ({ route, path = route }: { readonly route: string; readonly path?: string }) => (
  <Link href={urlOf('/routes', { route })}>
    <Code value={path} />
  </Link>
)

/** Returns a CLI command that begins with the program name of this host. */
export const commandOf = (words: string): string => `${me.value?.command ?? 'npx mcp-host'} ${words}`

export const explainCommand = (route: string, item?: { readonly kind: ItemKind; readonly name: string }): string =>
  commandOf(`explain --route ${shellWord(route)}${item ? ` ${OPTIONS[item.kind]} ${shellWord(item.name)}` : ''}`)

export const Reason = ({ reason }: { readonly reason: string }) => (
  <>
    : <Text value={reason} />
  </>
)

export function CallDetails({ call }: { readonly call: CallRow }) {
  const { error, route, kind, name, stages, ms, requestId, traceId, upstream } = call
  const item = kind !== undefined && name !== undefined ? { kind, name } : undefined
  const size = (value: number | undefined) => (value === undefined ? '–' : bytes(value))
  return (
    <>
      <div class="badges">
        <OutcomeBadge outcome={call.outcome} />
        {call.http && <Badge>{`${call.http.verb} ${call.http.status}`}</Badge>}
        <Badge>{milliseconds(ms)}</Badge>
      </div>
      {error && (
        <div class="note fault">
          <div>
            <p>
              <Text value={error.message} lines />
              {error.reason !== undefined && <Reason reason={error.reason} />}
            </p>
            <p class="small">
              <Code value={error.kind} />, status {error.status}
              {error.refusedBy !== undefined && (
                <>
                  , refused by <Code value={error.refusedBy} />
                </>
              )}
            </p>
          </div>
        </div>
      )}
      {stages && (
        <Timeline
          title="Stages"
          spans={stages}
          total={Math.max(ms, ...stages.map(stage => stage.start + stage.ms))}
          textOf={milliseconds}
        />
      )}
      <Facts
        list={[
          ['Time', fullTime(call.at)],
          ['Route', route === undefined ? undefined : <RouteLink route={route} />],
          ['Item', name],
          ...(upstream
            ? ([
                ['Upstream', upstream.name],
                ['Upstream tool', upstream.tool],
                ['Upstream duration', milliseconds(upstream.ms)],
                ['Upstream failure', upstream.failure],
              ] as const)
            : []),
          ['User', call.user ?? 'anonymous'],
          ['Client', clientText(call) ?? 'not stated'],
          ['OAuth client', call.oauthClient],
          ['Protocol version', call.revision],
          ['Transport', call.transport],
          ['Bytes in, out', `${size(call.bytesIn)}, ${size(call.bytesOut)}`],
          ['Client requests', call.asked?.join(', ')],
          ['Node', call.node],
          ['Request ID', requestId],
          ['Trace ID', traceId],
        ]}
      />
      <div class="tools">
        {requestId !== undefined && <Copy text={requestId} what="" label="Copy request ID" />}
        {traceId !== undefined && <Copy text={traceId} what="" label="Copy trace ID" />}
        <Copy text={location.href} what="" label="Copy link" />
      </div>
      {route !== undefined && (
        <Commands list={[{ label: 'Explain access in the terminal', command: explainCommand(route, item) }]} />
      )}
    </>
  )
}
