// A worker thread that validates results against a server's output schema, whose patterns can run indefinitely.
import { parentPort, workerData } from 'node:worker_threads'
import { createLinearAjv, isDraft07 } from '../../../core/mcp/schema/ajv.ts'
import type { SchemaCheck } from '../call.ts'

parentPort?.postMessage('started')
const { schema, value } = workerData as SchemaCheck
const ajv = createLinearAjv(isDraft07(schema) ? 'draft-07' : 'draft 2020-12', {})
const { $id: _, ...anonymous } = schema
const validate = ajv.compile(anonymous)
parentPort?.postMessage(validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'it' }))
