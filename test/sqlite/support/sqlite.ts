// `node:sqlite`, where this Node has it: tests that need it define nothing where it has not.

export interface Statement {
  run(...values: readonly unknown[]): unknown
  all(...values: readonly unknown[]): ReadonlyArray<Readonly<Record<string, unknown>>>
}

export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

interface Sqlite {
  readonly DatabaseSync: new (file: string, options?: { readonly readOnly?: boolean }) => Database
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

/** Without a flag since 22.13. */
export const HAS_SQLITE = major > 22 || (major === 22 && minor >= 13)

export function openDatabase(file: string): Database {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite') as unknown as Sqlite
  return new DatabaseSync(file)
}

/** `ok`, or what SQLite says of the file. */
export function integrityOf(file: string): string {
  try {
    const database = openDatabase(file)
    try {
      const rows = database.prepare('PRAGMA integrity_check').all()
      return rows.map(({ integrity_check }) => integrity_check).join('; ')
    } finally {
      database.close()
    }
  } catch (error) {
    return String(error)
  }
}
