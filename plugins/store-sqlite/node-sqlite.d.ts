// The types of `node:sqlite` (Node 22.13 or later) that this plugin uses. The types of the oldest supported Node lack
// it.
declare module 'node:sqlite' {
  export type SqlValue = null | number | bigint | string | Uint8Array

  export class StatementSync {
    run(...values: SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
    get(...values: SqlValue[]): Record<string, unknown> | undefined
    all(...values: SqlValue[]): Record<string, unknown>[]
    iterate(...values: SqlValue[]): IterableIterator<Record<string, unknown>>
  }

  export class DatabaseSync {
    constructor(path: string, options?: { readonly open?: boolean; readonly readOnly?: boolean })
    exec(sql: string): void
    prepare(sql: string): StatementSync
    close(): void
  }
}
