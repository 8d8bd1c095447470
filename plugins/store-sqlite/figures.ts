// What the file is measured by.
import type { PluginHost } from '../../core/index.ts'
import type { Committed } from './thread/messages.ts'
import type { Writer } from './writer.ts'

export function offerFigures(
  { figures }: Pick<PluginHost, 'figures'>,
  writer: () => Pick<Writer, 'trouble' | 'bytes' | 'evicted'>,
): { committed(committed: Committed): void } {
  const operations = figures.counter({
    name: 'mcp_host_sqlite_operations_total',
    help: 'Operations on the file of store-sqlite; divided by the number of commits: how many share one.',
  })
  const seconds = figures.histogram({
    name: 'mcp_host_sqlite_commit_duration_seconds',
    help: 'How long transactions on the file of store-sqlite took; durable ones wait for the disk.',
    labels: ['durable'],
  })
  figures.gauge({ name: 'mcp_host_sqlite_up', help: '1 where the file of store-sqlite can be written, else 0.' }, () =>
    writer().trouble === undefined ? 1 : 0,
  )
  figures.gauge({ name: 'mcp_host_sqlite_file_bytes', help: 'Size of the file of store-sqlite.' }, () => writer().bytes)
  figures.gauge(
    {
      name: 'mcp_host_sqlite_evicted_streams',
      help: 'Streams that store-sqlite dropped since the start because its file was nearly full.',
    },
    () => writer().evicted,
  )
  return {
    committed(committed) {
      operations(committed.operations)
      seconds(committed.seconds, { durable: String(committed.durable) })
    },
  }
}
