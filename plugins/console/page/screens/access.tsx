// Screen 4: which caller may use which item, with the explanation of each decision.
import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import {
  type AccessCell,
  type AccessMatrix,
  type AccessRow,
  type Caller,
  type Explanation,
  type ItemKind,
  PATHS,
  type Reply,
  type Routes,
} from '../../api.ts'
import { useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { visibleText } from '../data/text.ts'
import { Badge, type Tone } from '../parts/badge.tsx'
import { Commands } from '../parts/copy.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Explained } from '../parts/explained.tsx'
import { Choice } from '../parts/list.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { Code, Text } from '../parts/text.tsx'

const STATES: Readonly<Record<AccessCell['state'], readonly [string, string, Tone]>> = {
  allowed: ['allowed', 'Allowed', 'good'],
  unlisted: ['allowed', 'Not listed', 'good'],
  hidden: ['concealed', 'Hidden', 'plain'],
  denied: ['denied', 'Denied', 'fault'],
  error: ['denied', 'Error', 'fault'],
}

/** Callers that the operator adds. In memory only, since they can contain tokens. */
const added = signal<readonly Caller[]>([])

interface Opened {
  readonly row: AccessRow
  readonly index: number
}

interface ExplainProps {
  readonly matrix: AccessMatrix
  readonly opened: Opened
  readonly onClose: () => void
}

/** Tokens are not part of responses: the page adds its own. */
const withToken = (row: AccessRow): Caller => {
  const token = row.token === undefined ? undefined : added.value.find(({ label }) => label === row.label)?.token
  return token === undefined ? row.caller : { ...row.caller, token }
}

function ExplainDrawer({ matrix, opened: { row, index }, onClose }: ExplainProps) {
  const item = matrix.items[index]
  const cell = row.cells[index]
  const explanation = useResource<Reply<Explanation>>(PATHS.explain, {
    body: JSON.stringify({ path: matrix.path, caller: withToken(row), ...item }),
  })
  const state = cell && STATES[cell.state]
  return (
    <Drawer title={<Text value={`${item?.name ?? ''}: ${row.label}`} most={160} />} onClose={onClose}>
      {state && (
        <p>
          <Badge tone={state[2]}>{state[1]}</Badge> {cell.reason !== undefined && <Text value={cell.reason} />}
        </p>
      )}
      {row.token !== undefined && (
        <p class="small muted">
          <Text value={row.token} />
        </p>
      )}
      {row.refused && (
        <p class="note fault">
          <Text value={`The route refuses this caller with status ${row.refused.status}: ${row.refused.reason}`} />
        </p>
      )}
      <Explained from={explanation} />
    </Drawer>
  )
}

const ITEM_NAMES: Readonly<Record<ItemKind, string>> = { tools: 'tool', resources: 'resource', prompts: 'prompt' }

interface MatrixProps {
  readonly matrix: AccessMatrix
  readonly onOpen: (opened: Opened) => void
}

const Matrix = ({ matrix, onOpen }: MatrixProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard.
  <section class="matrix" aria-label="Access matrix" tabIndex={0}>
    <table>
      <thead>
        <tr>
          <th scope="col">Item</th>
          {matrix.callers.map(row => (
            <th key={row.label} scope="col" title={visibleText(row.label)}>
              <Text value={row.label} most={60} />
              {row.refused && <span class="hidden"> (refused by the route)</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {matrix.items.map(({ kind, name }, index) => (
          <tr key={`${kind} ${name}`}>
            <th scope="row" title={visibleText(name)}>
              <Code value={name} most={60} />
              {kind !== 'tools' && <span class="muted small"> {ITEM_NAMES[kind]}</span>}
            </th>
            {matrix.callers.map(row => {
              const [style, label] = STATES[row.cells[index]?.state ?? 'denied']
              return (
                <td key={row.label}>
                  <button type="button" class={style} onClick={() => onOpen({ row, index })}>
                    {label}
                    <span class="hidden">
                      : {ITEM_NAMES[kind]} <Text value={name} most={60} /> for <Text value={row.label} most={60} />
                    </span>
                  </button>
                </td>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
)

function AddCaller() {
  const [kind, setKind] = useState<'scopes' | 'roles' | 'token'>('scopes')
  function add(event: SubmitEvent) {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const text = String(new FormData(event.currentTarget).get('value') ?? '').trim()
    if (text === '') return
    event.currentTarget.reset()
    const number = added.value.length + 1
    const caller: Caller =
      kind === 'token'
        ? { label: `token ${number}`, token: text }
        : { label: `${kind === 'roles' ? 'role' : 'scope'} ${text}`, [kind]: text.split(/[\s,]+/) }
    added.value = [...added.value.filter(({ label }) => label !== caller.label), caller].slice(-16)
  }
  return (
    <form class="tools" onSubmit={add}>
      <Choice
        label="Add caller with"
        value={kind}
        options={[
          ['scopes', 'scopes'],
          ['roles', 'roles'],
          ['token', 'a token'],
        ]}
        onChange={value => setKind(value === 'roles' || value === 'token' ? value : 'scopes')}
      />
      <input
        name="value"
        type={kind === 'token' ? 'password' : 'text'}
        aria-label={kind === 'token' ? 'Token' : `Names of ${kind}`}
        autocomplete="off"
        required
      />
      <button type="submit">Add</button>
      {added.value.length > 0 && (
        <button
          type="button"
          onClick={() => {
            added.value = []
          }}
        >
          Remove added callers
        </button>
      )}
    </form>
  )
}

/** Callers that the operator adds replace the callers of the config. */
const bodyOf = (path: string): string =>
  JSON.stringify({ path, ...(added.value.length > 0 && { callers: [{ label: 'anonymous' }, ...added.value] }) })

function ForRoutes({ routes }: { readonly routes: Routes['routes'] }) {
  const [query, change] = useQuery()
  const path = query.get('path') ?? routes[0]?.samplePath
  const [opened, setOpened] = useState<Opened>()
  const matrix = useResource<Reply<AccessMatrix>>(path === undefined ? undefined : PATHS.access, {
    body: bodyOf(path ?? ''),
  })
  useEffect(() => setOpened(undefined), [path])
  if (path === undefined) return <Empty title="No routes" />
  const paths = [...new Set([path, ...routes.map(({ samplePath }) => samplePath)])]
  return (
    <>
      <div class="tools">
        <Choice
          label="Path"
          value={path}
          options={paths.map(one => [one, one])}
          onChange={value => change({ path: value })}
        />
        <AddCaller />
      </div>
      <Loaded from={matrix}>
        {data => (
          <>
            {data.items.length === 0 ? (
              <Empty title="This path serves nothing" />
            ) : (
              <Matrix matrix={data} onOpen={setOpened} />
            )}
            {data.notes.map(note => (
              <p key={note} class="small muted wrap">
                <Text value={note} />
              </p>
            ))}
            <Commands list={data.commands} />
            {opened && <ExplainDrawer matrix={data} opened={opened} onClose={() => setOpened(undefined)} />}
          </>
        )}
      </Loaded>
    </>
  )
}

export default function AccessScreen() {
  const routes = useResource<Reply<Routes>>(PATHS.routes)
  return <Loaded from={routes}>{data => <ForRoutes routes={data.routes} />}</Loaded>
}
