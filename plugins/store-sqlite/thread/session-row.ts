// A session's record as rows of the file, what may be asked of them, and about how many bytes they take. For sessions.ts.

export interface SessionRow {
  readonly opening: string
  readonly holder: string
  readonly home: string
  readonly version: number
  readonly revision: string
  readonly client: string
  readonly level: string
  readonly watched: readonly string[]
  readonly watchedBytes: number
}

export type RowChange =
  | { readonly level: string }
  | { readonly revision: string; readonly client: string }
  | { readonly watch: string; readonly cost: number; readonly most: number; readonly mostBytes: number }
  | { readonly unwatch: string; readonly cost: number }

export interface RowUse {
  readonly digest: string
  readonly inUse: boolean
  readonly ago: number
  /** Whether the record is to say so: for what is in use for longer than a call usually takes. */
  readonly noted: boolean
}

export interface RowClaim {
  readonly stream: string
  readonly epoch: number
}

/** As it is in the file. */
export type FoundRow = Omit<SessionRow, 'watched' | 'watchedBytes'> & {
  readonly id: number
  readonly watching: number
  readonly watched_bytes: number
  readonly stream: string | null
  readonly stream_node: string | null
  readonly stream_epoch: number
  readonly expires: number
}

/** What a row costs beside its texts: its indexes, its node, where it is counted. */
const ROW = 700
const PAGE = 4_096
/** Longer, and it may have pages of its own: of the rows of a table, and of the entries of an index. */
const SPILLS = { row: 2_000, entry: 900 }

const paged = (bytes: number, spills: number) => (bytes > spills ? Math.ceil((bytes + 100) / PAGE) * PAGE : bytes)

/** Bytes that a session takes, without what it watches. */
export const rowSize = ({ opening, client, holder }: Record<'opening' | 'client' | 'holder', string>): number =>
  ROW + 4 * Buffer.byteLength(holder) + paged(Buffer.byteLength(opening) + Buffer.byteLength(client), SPILLS.row)

/** Bytes that a resource which is watched takes. */
export const watchSize = (uri: string): number => paged(Math.ceil(Buffer.byteLength(uri) * 1.4) + 60, SPILLS.entry)

export const sizeOf = (row: SessionRow): number => row.watched.reduce((sum, uri) => sum + watchSize(uri), rowSize(row))
