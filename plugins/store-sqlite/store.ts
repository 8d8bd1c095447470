// The store in the file, for all processes of this host.
import type { Query, ReadAnswers, Store } from '../../core/store.ts'
import type { Writer } from './writer.ts'

export const createSqliteStore = (file: Writer): Store => ({
  shared: 'host',
  transact: (partition, steps, durability) => file.ask('transact', partition, steps, durability),
  read: async <const Queries extends readonly Query[]>(partition: string, queries: Queries) =>
    (await file.ask('read', partition, queries)) as ReadAnswers<Queries>,
  onReturn: listener => file.onReturn(listener),
})
