// Screen 12: the resolved config with the source of each value, the last reload, and the action that reloads.
import { signal } from '@preact/signals'
import { type ActionResult, type ConfigKey, type ConfigView, type LastReload, PATHS, type Reply } from '../../api.ts'
import { selectedNode } from '../data/node.ts'
import { useResource } from '../data/resource.ts'
import { isObject } from '../data/schema.ts'
import { fullTime, json, plural, visibleText } from '../data/text.ts'
import { Action, ActionsOff } from '../parts/action.tsx'
import { Badge } from '../parts/badge.tsx'
import { CodeBlock, Commands, Copy } from '../parts/copy.tsx'
import { List } from '../parts/list.tsx'
import { Loaded } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Facts, Text } from '../parts/text.tsx'

interface Row {
  readonly path: string
  readonly value: unknown
  readonly key: ConfigKey | undefined
}

/** One row per value: objects are split into their properties. */
function rowsOf(value: unknown, keys: ConfigView['keys'], path = ''): Row[] {
  if (!isObject(value) || Object.keys(value).length === 0) return [{ path, value, key: keys[path] }]
  return Object.entries(value).flatMap(([name, inner]) => rowsOf(inner, keys, path === '' ? name : `${path}.${name}`))
}

const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Key', value: ({ path }) => path, cell: ({ path }) => <Code value={path} /> },
  { title: 'Value', cell: ({ value }) => <Code value={valueText(value)} /> },
  { title: 'Source', value: ({ key }) => (key?.isDefault ? 'default' : key?.source), isExtra: true },
  {
    title: 'Change',
    cell: ({ key }) => (key?.restart ? <Badge tone="warn">needs restart</Badge> : undefined),
    width: '9rem',
    isExtra: true,
  },
]

const Reload = ({ reload }: { readonly reload: LastReload }) => (
  <div class={reload.ok ? 'note good' : 'note fault'}>
    <div class="wrap">
      <strong>{reload.ok ? 'Reloaded' : 'Reload failed'}</strong> <span class="number">{fullTime(reload.at)}</span>
      {reload.problem !== undefined && (
        <p>
          <Text value={reload.problem} lines />
        </p>
      )}
      {reload.taken.length > 0 && (
        <p class="small">
          Applied: <Text value={reload.taken.join(', ')} />. {plural(reload.told, 'client')} notified.
        </p>
      )}
      {reload.restart.length > 0 && (
        <p class="small">
          Needs a restart: <Text value={reload.restart.join(', ')} />
        </p>
      )}
    </div>
  </div>
)

/** The result of the last reload on each node. Stays when the screen changes. */
const results = signal<{ readonly at: number; readonly nodes: NonNullable<ActionResult['nodes']> } | undefined>(
  undefined,
)

const Results = ({ of: { at, nodes } }: { readonly of: NonNullable<typeof results.value> }) => (
  <section class="card" aria-label="Reload by node">
    <h2>
      Reload by node <span class="number small muted">{fullTime(at)}</span>
    </h2>
    <ul class="rows">
      {nodes.map(({ node, ok, message }) => (
        <li key={node}>
          <Badge tone={ok ? 'good' : 'fault'}>{ok ? 'OK' : 'Failed'}</Badge>
          <span class="grow wrap">
            <strong>
              <Text value={node} most={64} />
            </strong>{' '}
            <Text value={message} lines />
          </span>
        </li>
      ))}
    </ul>
  </section>
)

const Details = ({ row: { key, value } }: { readonly row: Row }) => (
  <>
    {key?.description !== undefined && (
      <p class="wrap">
        <Text value={key.description} />
      </p>
    )}
    <CodeBlock text={json(value)} what="the value" />
    <Facts
      list={[
        ['Source', key?.isDefault ? 'default' : (key?.source ?? 'unknown')],
        ['Change', key?.restart ? 'Needs a restart' : 'Applied by a reload'],
      ]}
    />
  </>
)

export default function ConfigScreen() {
  const config = useResource<Reply<ConfigView>>(PATHS.config)
  const node = selectedNode.value
  return (
    <Loaded from={config}>
      {data => (
        <>
          {data.reload && <Reload reload={data.reload} />}
          {results.value && <Results of={results.value} />}
          <List
            noun="key"
            caption="Resolved configuration"
            columns={COLUMNS}
            rows={rowsOf(data.config, data.keys)}
            keyOf={({ path }) => ({ key: path })}
            textOf={({ path, value, key }) => `${path} ${valueText(value)} ${key?.description ?? ''}`}
            filters={[
              {
                name: 'only',
                label: 'Source',
                options: [
                  ['set', 'Config'],
                  ['default', 'Default'],
                ],
                of: ({ key }) => (key?.isDefault ? 'default' : 'set'),
              },
            ]}
            details={{ title: ({ path }) => path, content: row => <Details row={row} /> }}
          >
            <Copy text={json(data.config)} what="" label="Copy as JSON" />
            <Action
              label={node === '' ? 'Reload all nodes' : `Reload ${visibleText(node, 40)}`}
              title={
                node === '' ? 'Reload the config of all nodes?' : `Reload the config of node ${visibleText(node, 80)}?`
              }
              path={PATHS.reload}
              body={node === '' ? {} : { node }}
              onDone={({ nodes = [] }) => {
                results.value = { at: Date.now(), nodes }
                config.reload()
              }}
            >
              {node === '' ? 'Every node reads its config again.' : 'This node reads its config again.'} With{' '}
              <code>--workers</code>, new workers read it. A node with an invalid config keeps the previous version.
            </Action>
            {data.file !== undefined && <Code value={data.file} />}
          </List>
          <ActionsOff />
          <Commands list={data.commands} />
        </>
      )}
    </Loaded>
  )
}
