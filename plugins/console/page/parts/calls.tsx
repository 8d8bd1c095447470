// Parts that several screens of calls share: outcome, item, client, and the drawer of one call.
import { Link } from 'wouter-preact'
import type { CallRow, ItemKind } from '../../api.ts'
import { urlOf } from '../data/query.ts'
import { bytes, fullTime, milliseconds, shellWord } from '../data/text.ts'
import { Badge, type Tone } from './badge.tsx'
import { Span } from './charts.tsx'
import { Commands, Copy } from './copy.tsx'
import { Drawer } from './dialogs.tsx'
import { Code, Optional, Text } from './text.tsx'

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

export const explainCommand = (route: string, item?: { readonly kind: ItemKind; readonly name: string }): string =>
  `mcp-host explain --route ${shellWord(route)}${item ? ` ${OPTIONS[item.kind]} ${shellWord(item.name)}` : ''}`

function Timeline({ call }: { readonly call: CallRow }) {
  const { stages = [], ms } = call
  const total = Math.max(ms, ...stages.map(stage => stage.start + stage.ms))
  return (
    <section class="stack">
      <h3>Stages</h3>
      {stages.length === 0 ? (
        <p class="muted">This call was not sampled.</p>
      ) : (
        <div class="stages">
          {stages.map(stage => (
            <>
              <span class="mono">
                <Text value={stage.name} most={40} />
              </span>
              <Span start={stage.start} end={stage.start + stage.ms} total={total} />
              <span class="number small">{milliseconds(stage.ms)}</span>
            </>
          ))}
        </div>
      )}
    </section>
  )
}

export function CallDrawer({ call, onClose }: { readonly call: CallRow; readonly onClose: () => void }) {
  const { error, route, kind, name } = call
  const item = kind !== undefined && name !== undefined ? { kind, name } : undefined
  return (
    <Drawer title={<Text value={itemText(call)} most={120} />} onClose={onClose}>
      <div class="badges">
        <OutcomeBadge outcome={call.outcome} />
        {call.http && <Badge>{`${call.http.verb} ${call.http.status}`}</Badge>}
        <Badge>{milliseconds(call.ms)}</Badge>
      </div>
      {error && (
        <div class="note fault">
          <div>
            <p>
              <Text value={error.message} lines />
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
      <Timeline call={call} />
      <dl class="facts">
        <dt>Time</dt>
        <dd class="number">{fullTime(call.at)}</dd>
        <dt>Route</dt>
        <dd>
          {route === undefined ? (
            '–'
          ) : (
            <Link href={urlOf('/routes', { route })}>
              <Code value={route} />
            </Link>
          )}
        </dd>
        <dt>Item</dt>
        <dd>
          <Optional value={name} />
        </dd>
        <dt>User</dt>
        <dd>
          <Optional value={call.user} none="anonymous" />
        </dd>
        <dt>Client</dt>
        <dd>
          <Optional value={clientText(call)} none="not stated" />
        </dd>
        <dt>OAuth client</dt>
        <dd>
          <Optional value={call.oauthClient} />
        </dd>
        <dt>Protocol version</dt>
        <dd>
          <Optional value={call.revision} />
        </dd>
        <dt>Transport</dt>
        <dd>
          <Optional value={call.transport} />
        </dd>
        <dt>Bytes in, out</dt>
        <dd class="number">
          {call.bytesIn === undefined ? '–' : bytes(call.bytesIn)},{' '}
          {call.bytesOut === undefined ? '–' : bytes(call.bytesOut)}
        </dd>
        {call.asked && call.asked.length > 0 && (
          <>
            <dt>Client requests</dt>
            <dd>
              <Text value={call.asked.join(', ')} />
            </dd>
          </>
        )}
        <dt>Node</dt>
        <dd>
          <Text value={call.node} />
        </dd>
        <dt>Request ID</dt>
        <dd>
          <Optional value={call.requestId} />
        </dd>
        <dt>Trace ID</dt>
        <dd>
          <Optional value={call.traceId} />
        </dd>
      </dl>
      <div class="tools">
        {call.requestId !== undefined && <Copy text={call.requestId} what="" label="Copy request ID" />}
        {call.traceId !== undefined && <Copy text={call.traceId} what="" label="Copy trace ID" />}
        <Copy text={location.href} what="" label="Copy link" />
      </div>
      {route !== undefined && (
        <Commands list={[{ label: 'Explain access in the terminal', command: explainCommand(route, item) }]} />
      )}
    </Drawer>
  )
}
