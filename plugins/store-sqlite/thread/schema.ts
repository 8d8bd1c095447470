// The tables. Times are milliseconds since the epoch.
import { STORE_SCHEMA } from './partition.ts'

/** Files of earlier versions are refused. */
export const SCHEMA_VERSION = 6

export const SCHEMA = `${STORE_SCHEMA}
CREATE TABLE probe (id INTEGER PRIMARY KEY, filler BLOB);
`
