// Screen 12: the resolved config with the source of each value, the last reload, and the action that reloads.
import { type ConfigKey, type ConfigView, type LastReload, PATHS, type Reply } from '../../api.ts'
import { useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { fullTime, plural } from '../data/text.ts'
import { Action, ActionsOff } from '../parts/action.tsx'
import { Badge } from '../parts/badge.tsx'
import { CodeBlock, Commands, Copy } from '../parts/copy.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Code, Optional, Text } from '../parts/text.tsx'

interface Row {
  readonly path: string
  readonly value: unknown
  readonly key: ConfigKey | undefined
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** One row per value: objects are split into their properties. */
function rowsOf(value: unknown, keys: ConfigView['keys'], path = ''): Row[] {
  if (!isObject(value) || Object.keys(value).length === 0) return [{ path, value, key: keys[path] }]
  return Object.entries(value).flatMap(([name, inner]) => rowsOf(inner, keys, path === '' ? name : `${path}.${name}`))
}

const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Key', cell: ({ path }) => <Code value={path} />, by: ({ path }) => path },
  { title: 'Value', cell: ({ value }) => <Code value={valueText(value)} /> },
  {
    title: 'Source',
    cell: ({ key }) => (key?.isDefault ? <span class="muted">default</span> : <Optional value={key?.source} />),
    by: ({ key }) => (key?.isDefault ? '' : (key?.source ?? '')),
    isExtra: true,
  },
  {
    title: 'Change',
    cell: ({ key }) => key?.restart && <Badge tone="warn">needs restart</Badge>,
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

export default function ConfigScreen() {
  const config = useResource<Reply<ConfigView>>(PATHS.config)
  const [query, change] = useQuery()
  const words = (query.get('q') ?? '').toLowerCase()
  const isChanged = query.get('only') === 'set'
  return (
    <Loaded from={config}>
      {data => {
        const rows = rowsOf(data.config, data.keys)
        const shown = rows.filter(
          ({ path, value, key }) =>
            !(isChanged && key?.isDefault) &&
            `${path} ${valueText(value)} ${key?.description ?? ''}`.toLowerCase().includes(words),
        )
        const wanted = query.get('key')
        const opened =
          wanted === null ? undefined : rows.find(({ path }) => path === wanted || path.startsWith(`${wanted}.`))
        return (
          <>
            {data.reload && <Reload reload={data.reload} />}
            <div class="tools">
              <label class="inline">
                <span>Filter</span>
                <input
                  type="search"
                  value={query.get('q') ?? ''}
                  onInput={event => change({ q: event.currentTarget.value })}
                />
              </label>
              <label class="inline">
                <input
                  type="checkbox"
                  checked={isChanged}
                  onChange={event => change({ only: event.currentTarget.checked ? 'set' : undefined })}
                />
                <span>Without defaults</span>
              </label>
              {data.file !== undefined && (
                <span class="muted small wrap">
                  <Code value={data.file} />
                </span>
              )}
              <Copy text={JSON.stringify(data.config, undefined, 2)} what="" label="Copy as JSON" />
              <Action label="Reload" title="Reload the config?" path={PATHS.reload} onDone={() => config.reload()}>
                The host reads the config again. An invalid config changes nothing.
              </Action>
            </div>
            <ActionsOff />
            {shown.length === 0 ? (
              <Empty title="No key matches the filter" />
            ) : (
              <Table
                caption="Resolved configuration"
                columns={COLUMNS}
                rows={shown}
                keyOf={({ path }) => path}
                onOpen={({ path }) => change({ key: path })}
              />
            )}
            <Commands list={data.commands} />
            {opened && (
              <Drawer title={<Text value={opened.path} />} onClose={() => change({ key: undefined })}>
                {opened.key?.description !== undefined && (
                  <p class="wrap">
                    <Text value={opened.key.description} />
                  </p>
                )}
                <CodeBlock text={JSON.stringify(opened.value, undefined, 2) ?? ''} what="the value" />
                <dl class="facts">
                  <dt>Source</dt>
                  <dd>{opened.key?.isDefault ? 'default' : <Optional value={opened.key?.source} none="unknown" />}</dd>
                  <dt>Change</dt>
                  <dd>{opened.key?.restart ? 'Needs a restart' : 'Applied by a reload'}</dd>
                </dl>
              </Drawer>
            )}
          </>
        )
      }}
    </Loaded>
  )
}
