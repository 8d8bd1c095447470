// The store in PostgreSQL. Each operation is one function call: one round trip and one transaction.
import type { Outcome, Query, ReadAnswers, Step, Store } from '../../core/store.ts'
import type { Postgres } from './connection.ts'

export const createPostgresStore = (postgres: Postgres): Store => ({
  shared: true,
  transact: (partition: string, steps: readonly Step[], durability) =>
    postgres.callInTime<Outcome>('transact', partition, steps, durability === 'relaxed'),
  async read<const Queries extends readonly Query[]>(partition: string, queries: Queries) {
    const { answers } = (await postgres.call('read', partition, queries)) as { readonly answers: readonly unknown[] }
    return answers.map(answer => answer ?? undefined) as unknown as ReadAnswers<Queries>
  },
  onReturn: listener => postgres.onReturn(listener),
})
