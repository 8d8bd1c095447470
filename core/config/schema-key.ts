// Tells schemas apart by what they say, so that a validator that was built is never that of another schema.
// For validate-value.ts, and for build/write-validators.ts.
import { createHash } from 'node:crypto'

export const schemaKey = (schema: object): string =>
  createHash('sha256').update(JSON.stringify(schema)).digest('base64url')
